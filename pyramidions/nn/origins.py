"""Which tokens the vectors of a sequence are made of."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.base.device import has_values

#: members of a vector that are added up one by one; more are a product of whole matrices
_FEW = 16


class Origins(NamedTuple):
    """How much of each token of the vocabulary is in each vector, through all poolings.

    Attention is not followed: a vector counts as its own position, whatever it has read. Before any pooling each vector
    is one token, which ``places`` names; after it, ``shares`` has all of them. A pooling that mixes all vectors into
    each takes no more memory than one that mixes two.

    Attributes:
        tokens: (B, U), the different tokens of each document; any token where a document has fewer.
        real: (B, K), how much of each vector is tokens, in float32 or wider: 1, and 0 at padding.
        places: (B, K), which of ``tokens`` each vector is; read where ``shares`` is None.
        shares: (B, K, U), the share of each of ``tokens`` in each vector; None before the first pooling.
    """

    tokens: Tensor
    real: Tensor
    places: Tensor
    shares: Tensor | None = None

    @classmethod
    def of_tokens(cls, tokens: Tensor, padding_mask: Tensor, dtype: torch.dtype) -> "Origins":
        """Return the origins of tokens (B, L) before any pooling. The host waits for a GPU here, once a batch."""
        ordered, order = tokens.sort(dim=1)
        # (B, L), the rank of each token among the different ones of its document
        rank = torch.zeros_like(ordered)
        rank[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(dim=1)
        count = int(rank[:, -1].max()) + 1 if has_values(rank) else rank.size(1)
        different = tokens.new_zeros(len(tokens), count).scatter(1, rank, ordered)
        real = (~padding_mask).to(torch.promote_types(dtype, torch.float32))
        return cls(different, real, torch.zeros_like(rank).scatter(1, order, rank))

    def pooled(self, sources: Tensor, weights: Tensor) -> "Origins":
        """Return the origins of vectors that a pooling makes of these.

        Args:
            sources: (B, K', G), the vectors that each new one is made of.
            weights: (B, K', G), how much of each.

        Returns:
            Of K' vectors: shares are the products of the weights on the way (Pietruszka et al. 2022, section 4).
        """
        weights = weights.to(self.real.dtype)
        rows = sources.flatten(1)
        weights = weights * self.real.gather(1, rows).view_as(weights)
        if self.shares is None:
            # (B, K' * G) -> (B, K', G): which token each member is
            members = self.places.gather(1, rows).view_as(sources)
            shares = weights.new_zeros(*sources.shape[:2], self.tokens.size(1)).scatter_add(2, members, weights)
        elif sources.size(2) <= _FEW:
            shares = weights.new_zeros(*sources.shape[:2], self.tokens.size(1))
            for member, weight in zip(sources.unbind(2), weights.unbind(2), strict=True):
                # (B, K', 1) -> (B, K', U)
                shares = shares + weight[..., None] * self.shares.take_along_dim(member[..., None], dim=1)
        else:
            # (B, K', K) @ (B, K, U)
            mixed = weights.new_zeros(*sources.shape[:2], self.real.size(1)).scatter_add(2, sources, weights)
            with torch.autocast(mixed.device.type, enabled=False):
                shares = mixed @ self.shares
        return Origins(self.tokens, weights.sum(dim=2), self.places, shares)

    def copied(self, attention: Tensor) -> Tensor:
        """Return how likely each of ``tokens`` is copied where vectors are read so much: (B, T, K) -> (B, T, U)."""
        if self.shares is not None:
            with torch.autocast(attention.device.type, enabled=False):
                return attention @ self.shares
        copied = attention.new_zeros(*attention.shape[:2], self.tokens.size(1))
        return copied.scatter_add(2, self.places[:, None].expand_as(attention), attention * self.real[:, None])

    def select(self, documents: Tensor) -> "Origins":
        """Return those of ``documents`` (B',), in that order."""
        tokens, real, places = (x.index_select(0, documents) for x in self[:3])
        return Origins(tokens, real, places, None if self.shares is None else self.shares.index_select(0, documents))

"""Which tokens the vectors of a sequence are made of."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.base.device import has_values


class Origins(NamedTuple):
    """The source tokens in each vector, and how much of each, through all poolings.

    Attention is not followed: a vector counts as its own position, whatever it has read.

    Attributes:
        tokens: (B, K, G), in the vocabulary.
        weights: (B, K, G), in float32 or wider; the weights of a real vector sum to 1, those of padding to 0.
    """

    tokens: Tensor
    weights: Tensor

    @classmethod
    def of_tokens(cls, tokens: Tensor, padding_mask: Tensor, dtype: torch.dtype) -> "Origins":
        """Return the origins of tokens (B, L) before any pooling: each is made of itself."""
        return cls(tokens[..., None], (~padding_mask)[..., None].to(torch.promote_types(dtype, torch.float32)))

    def pooled(self, sources: Tensor, weights: Tensor) -> "Origins":
        """Return the origins of vectors that a pooling makes of these.

        Args:
            sources: (B, K', G'), the vectors that each new one is made of.
            weights: (B, K', G'), how much of each.

        Returns:
            Of K' vectors, with G' * G members each: shares are the products of the weights on the way (Pietruszka et
            al. 2022, section 4).
        """
        shape = (*sources.shape[:2], -1)
        # (B, K', G') -> (B, K' * G', G)
        rows = sources.flatten(1)[..., None].expand(-1, -1, self.tokens.size(2))
        shares = self.weights.gather(1, rows) * weights.to(self.weights.dtype).flatten(1)[..., None]
        return Origins(self.tokens.gather(1, rows).reshape(shape), shares.reshape(shape))

    def select(self, documents: Tensor) -> "Origins":
        """Return those of ``documents`` (B',), in that order."""
        return Origins(self.tokens.index_select(0, documents), self.weights.index_select(0, documents))


class Copies(NamedTuple):
    """What can be copied from each vector: its origins, summed over equal tokens.

    Attributes:
        tokens: (B, U), the different tokens of each document; any token where a document has fewer.
        shares: (B, K, U), the share of each of them in each vector; or None where each vector is one token.
        places: (B, K), which of ``tokens`` each vector is; read where ``shares`` is None.
        real: (B, K), how much of each vector is tokens: 1, and 0 at padding.
    """

    tokens: Tensor
    shares: Tensor | None
    places: Tensor
    real: Tensor

    @classmethod
    def of(cls, origins: Origins) -> "Copies":
        """Sum ``origins`` over equal tokens. The host waits for a GPU here, once a batch."""
        tokens, weights = origins
        documents, length, members = tokens.shape
        ordered, order = tokens.flatten(1).sort(dim=1)
        # (B, K * G), the rank of each among the different tokens of its document
        rank = torch.zeros_like(ordered)
        rank[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(dim=1)
        places = torch.zeros_like(rank).scatter(1, order, rank)
        count = int(rank[:, -1].max()) + 1 if has_values(rank) else rank.size(1)
        different = tokens.new_zeros(documents, count).scatter(1, rank, ordered)
        real = weights.sum(dim=2)
        if members == 1:
            return cls(different, None, places, real)
        shares = weights.new_zeros(documents, length, count).scatter_add(2, places.view_as(tokens), weights)
        return cls(different, shares, places, real)

    def copied(self, attention: Tensor) -> Tensor:
        """Return how likely each of ``tokens`` is copied: how much vectors are read, (B, T, K) -> (B, T, U)."""
        if self.shares is not None:
            return attention @ self.shares
        copied = attention.new_zeros(*attention.shape[:2], self.tokens.size(1))
        return copied.scatter_add(2, self.places[:, None].expand_as(attention), attention * self.real[:, None])

    def select(self, documents: Tensor) -> "Copies":
        """Return those of ``documents`` (B',), in that order."""
        return Copies(*(None if x is None else x.index_select(0, documents) for x in self))  # type: ignore[arg-type]

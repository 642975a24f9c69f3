"""Which positions and tokens of a document the vectors of a sequence are made of, through all poolings."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.base.device import has_values
from pyramidions.nn.functional.precision import full_type

#: lists of members may hold so many entries for each position; more are kept as a whole matrix
_ENTRIES = 2


class Provenance(NamedTuple):
    """How much of each position is in each vector.

    Poolings are followed, attention is not: a vector counts as its own position, whatever it has read. Where poolings
    give each position to few vectors, as most do, each vector has a list of members; where they mix all vectors into
    each, there is a whole matrix.
    """

    weights: Tensor  # (B, K, G), or (B, K, L) without members; how much of each, in float32 or wider
    # (B, K, G), the positions that each vector is made of; one may be named twice. None for all of them.
    members: Tensor | None
    length: int  # L

    @classmethod
    def of_positions(cls, padding_mask: Tensor, dtype: torch.dtype = torch.float32) -> "Provenance":
        """Return the provenance before any pooling, where each real position (B, L) is a vector of its own."""
        members = torch.arange(padding_mask.size(1), device=padding_mask.device).expand(padding_mask.shape)
        weights = (~padding_mask).to(full_type(dtype))
        return cls(weights[..., None], members[..., None], padding_mask.size(1))

    def pooled(self, sources: Tensor, weights: Tensor) -> "Provenance":
        """Return the provenance of vectors that are made of these: of ``sources`` (B, K', G'), by ``weights`` likewise.

        Weights are the products of those on the way (Pietruszka et al. 2022, section 4). They sum to 1 if those of all
        poolings do, as in all our kinds, and to 0 at padding. A source may be named twice.
        """
        weights = weights.to(self.weights.dtype)
        entries = math.prod(sources.shape[1:])
        if self.members is not None and entries * self.members.size(2) <= _ENTRIES * self.length:
            # (B, K', G', G) -> (B, K', G' * G)
            members, within = (_rows(x, sources) for x in (self.members, self.weights))
            return Provenance((weights[..., None] * within).flatten(2), members.flatten(2), self.length)
        # (B, K', K) @ (B, K, L)
        mixed = weights.new_zeros(*sources.shape[:2], self.weights.size(1)).scatter_add(2, sources, weights)
        return Provenance(self.of(mixed), None, self.length)

    def of(self, weights: Tensor) -> Tensor:
        """Carry weights (B, T, K) of the vectors back to positions: (B, T, L)."""
        if self.members is None:
            with torch.autocast(weights.device.type, enabled=False):
                return weights @ self.weights
        members = self.members.flatten(1)[:, None].expand(-1, weights.size(1), -1)
        each = (weights[..., None] * self.weights[:, None]).flatten(2)
        return each.new_zeros(*weights.shape[:2], self.length).scatter_add(2, members, each)

    def select(self, documents: Tensor) -> "Provenance":
        """Return that of ``documents`` (B',), in that order."""
        members = None if self.members is None else self.members.index_select(0, documents)
        return Provenance(self.weights.index_select(0, documents), members, self.length)


def _rows(x: Tensor, rows: Tensor) -> Tensor:
    """Return the rows (B, K', G') of (B, K, G): (B, K', G', G)."""
    return x.gather(1, rows.flatten(1)[..., None].expand(-1, -1, x.size(2))).view(*rows.shape, x.size(2))


class Origins(NamedTuple):
    """The tokens of a document, and how much of each is in each vector."""

    tokens: Tensor  # (B, U), the different tokens of each document; any token where a document has fewer
    places: Tensor  # (B, L), which of ``tokens`` each position holds
    made_of: Provenance  # which positions each vector is made of

    @classmethod
    def of_tokens(cls, tokens: Tensor, padding_mask: Tensor, dtype: torch.dtype) -> "Origins":
        """Return the origins of tokens (B, L) before any pooling. The host waits for a GPU here, once a batch."""
        ordered, order = tokens.sort(dim=1)
        # (B, L), the rank of each token among the different ones of its document
        rank = torch.zeros_like(ordered)
        rank[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(dim=1)
        count = int(rank[:, -1].max()) + 1 if has_values(rank) else rank.size(1)
        different = tokens.new_zeros(len(tokens), count).scatter(1, rank, ordered)
        places = torch.zeros_like(rank).scatter(1, order, rank)
        return cls(different, places, Provenance.of_positions(padding_mask, dtype))

    def pooled(self, sources: Tensor, weights: Tensor) -> "Origins":
        """Return the origins of vectors that a pooling makes; arguments as `Provenance`'s."""
        return Origins(self.tokens, self.places, self.made_of.pooled(sources, weights))

    def by_token(self, read: Tensor) -> Tensor:
        """Add up what is read of each position, (B, T, L), for each of ``tokens``: (B, T, U)."""
        by_place = read.new_zeros(*read.shape[:2], self.tokens.size(1))
        return by_place.scatter_add(2, self.places[:, None].expand_as(read), read)

    def select(self, documents: Tensor) -> "Origins":
        """Return those of ``documents`` (B',), in that order."""
        tokens, places = (x.index_select(0, documents) for x in (self.tokens, self.places))
        return Origins(tokens, places, self.made_of.select(documents))

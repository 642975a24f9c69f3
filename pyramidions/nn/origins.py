"""Which tokens the vectors of a sequence are made of."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.base.device import has_values
from pyramidions.nn.provenance import Provenance


class Origins(NamedTuple):
    """The tokens of a document, and how much of each is in each vector.

    Attributes:
        tokens: (B, U), the different tokens of each document; any token where a document has fewer.
        places: (B, L), which of ``tokens`` each position holds.
        made_of: which positions each vector is made of.
        unpooled: (B, L, D), the vector of each position just before the first pooling; None if none has come.
    """

    tokens: Tensor
    places: Tensor
    made_of: Provenance
    unpooled: Tensor | None = None

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

    def pooled(self, sources: Tensor, weights: Tensor, x: Tensor) -> "Origins":
        """Return the origins of vectors that a pooling makes of ``x`` (B, K, D); other arguments as `Provenance`'s."""
        unpooled = x if self.unpooled is None else self.unpooled
        return Origins(self.tokens, self.places, self.made_of.pooled(sources, weights), unpooled)

    def by_token(self, read: Tensor) -> Tensor:
        """Add up what is read of each position, (B, T, L), for each of ``tokens``: (B, T, U)."""
        found = read.new_zeros(*read.shape[:2], self.tokens.size(1))
        return found.scatter_add(2, self.places[:, None].expand_as(read), read)

    def select(self, documents: Tensor) -> "Origins":
        """Return those of ``documents`` (B',), in that order."""
        tokens, places = (x.index_select(0, documents) for x in (self.tokens, self.places))
        unpooled = None if self.unpooled is None else self.unpooled.index_select(0, documents)
        return Origins(tokens, places, self.made_of.select(documents), unpooled)

"""What flows through an encoder: vectors, what is known about each of them, and what a pooler may ask for."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.nn.marks import Marks
from pyramidions.nn.provenance import Origins
from pyramidions.nn.roles import Roles
from pyramidions.nn.sublayer import Memory


class Sequence(NamedTuple):
    """A batch of sequences of vectors.

    What follows `lengths`, but for `global_vectors` and `above`, is None where nothing reads it. It is None, as
    `position` is, after a pooling without provenance. A vector that a pooler mixed has what its strongest member had.
    """

    x: Tensor  # (B, L, D)
    padding_mask: Tensor  # (B, L), True at padding
    position: Tensor | None = None  # (B, L), the place of each vector in its document
    # number of real positions of each document, B integers on the host, if all padding is on the right; None if unknown
    lengths: list[int] | None = None
    # (B, L), the number of the unit of the text (a sentence, a turn, a section) of each vector, and -1 at padding
    unit: Tensor | None = None
    marks: Marks | None = None  # the vectors that all others read, and that read all others
    query: Marks | None = None  # the vectors of the query that stands before the document
    roles: Roles | None = None  # who speaks in each unit
    origins: Origins | None = None  # which tokens the vectors are made of
    key_bias: Tensor | None = None  # (B, L), what attention adds to the scores of each vector as a key
    # (B, G, D), learned vectors beside the tokens: all of a document read them, and they read all of it
    global_vectors: Tensor | None = None
    # pooled vectors that these read by cross-attention; None before a top-down upsampling, and without one
    above: Memory | None = None

    @property
    def leads_unit(self) -> Tensor:
        """Which real vectors are the first of their unit, which a pooling may have torn apart: (B, L)."""
        if self.unit is None:
            raise ValueError("The sequence must say which unit of the text each vector stands in, but does not.")
        units, order = self.unit.masked_fill(self.padding_mask, -1).sort(dim=1, stable=True)
        # Padding comes before all units.
        leads = units.diff(dim=1, prepend=torch.full_like(units[:, :1], -1)) != 0
        return torch.zeros_like(leads).scatter(1, order, leads)

    @property
    def attention_mask(self) -> Tensor | None:
        """`padding_mask`, or None if there is known to be no padding: attention without a mask is faster."""
        full = self.lengths is not None and sum(self.lengths) == self.padding_mask.numel()
        return None if full else self.padding_mask


class PoolingContext(NamedTuple):
    """What a pooler may ask for."""

    # returns how much attention each position received in the layer before, (B, L), zero at padding. It is computed
    # when called, without gradients.
    received: Callable[[], Tensor]

"""An encoder, and what selects units of a text by its vectors: sentences, turns, or sections."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pyramidions.nn.encoder import Encoder
from pyramidions.nn.selector import Pick, Selector, Steps


class UnitVectors(NamedTuple):
    """The units of a batch of documents; U is the largest number of them."""

    x: Tensor  # (B, U, D), a vector of each
    known: Tensor  # (B, U), False where a document has no such unit, or a pooling handed on no vector of it


class SentenceRanker(nn.Module):
    """Selects units of a document by the first vector of each (Liu and Lapata 2019, section 3.1).

    That is the vector at its start, unless a pooling handed on later ones alone. The encoder knows the marker, and its
    poolings have provenance.
    """

    def __init__(self, encoder: Encoder, output: Selector, padding_idx: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.output = output
        self.padding_idx = padding_idx

    def forward(
        self,
        source: Tensor,
        lengths: list[int] | None = None,
        allowed: Tensor | None = None,
        picks: Sequence[Pick] = (),
    ) -> Tensor | list[Steps]:
        """Rate the units of documents (B, L): (B, U), -inf for what is unknown, not allowed, or not selected.

        A unit starts at position 0 and at each marker. The number of real tokens of each document may be given as
        ``lengths``. Only units of ``allowed`` (B, U) may be selected; all if None. Of a model that points, each of
        ``picks`` chooses units in a selection of its own; then the steps of each are returned.
        """
        units = self.units(source, lengths)
        known = units.known if allowed is None else units.known & allowed
        if picks:
            return [self.output.steps(units.x, known, pick) for pick in picks]
        return self.output(units.x, known)

    def units(self, source: Tensor, lengths: list[int] | None = None) -> UnitVectors:
        """Return a vector of each unit of a batch; arguments as in `forward`."""
        padding_mask = source.eq(self.padding_idx)
        encoded = self.encoder(source, padding_mask, lengths)
        units, unit = self.encoder.structure_of.units(source, padding_mask), encoded.sequence.unit
        if units is None or unit is None:
            raise ValueError("A model that rates sentences needs poolings that tell what their vectors are made of.")
        number, length = max(1, int(units.max()) + 1), unit.size(1)
        # Where each unit begins; the first place, where a pooling has torn it apart; `length` where it has none.
        places = torch.arange(length, device=unit.device).expand_as(unit)
        places = places.masked_fill(~encoded.sequence.leads_unit, length)
        begins = places.new_full((len(source), number), length).scatter_reduce(1, unit.clamp(min=0), places, "amin")
        known = begins < length
        x = encoded.sequence.x
        # (B, K, D) -> (B, U, D)
        return UnitVectors(x.gather(1, begins.clamp(max=length - 1)[..., None].expand(-1, -1, x.size(2))), known)

"""Attention inside the units of a text: sentences, turns, sections."""

from torch import Tensor

from pyramidions.nn.attention.blockwise import BlockwiseAttention
from pyramidions.nn.attention.core import ATTENTION, CoreAttention
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.units import Units


@ATTENTION.register("segments")
class SegmentsAttention(CoreAttention):
    """Full attention inside each unit of the text (Zhu et al. 2020, section 3.2).

    Units of more than ``segment_length`` positions are cut into segments of that length. Where no units are told, a
    document is one. No matrix is larger than a segment's, and units of like length share a batch.

    Args:
        segment_length: positions in a segment, at most.
        dropout: probability of dropping an attention weight while training.

    Raises:
        ValueError: a segment length below 1.
    """

    crosses = False
    lengths = ("segment_length",)

    def __init__(self, segment_length: int = 256, dropout: float = 0.0) -> None:
        super().__init__()
        if segment_length < 1:
            raise ValueError(f"`segment_length` must be at least 1, but is {segment_length}.")
        self.segment_length = segment_length
        self.within = FullAttention(dropout)
        self.of_one_unit = BlockwiseAttention(segment_length, dropout)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        key_padding_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        units: Units | None = None,
    ) -> Tensor:
        self.refuse(q, k, is_causal)
        if units is None:
            return self.of_one_unit(q, k, v, key_padding_mask, is_causal=is_causal)
        segments = units.segments(self.segment_length)
        return segments.unpack(
            [
                self.within(*(segments.pack(x, rows) for x in (q, k, v)), rows.padding_mask, is_causal=is_causal)
                for rows in segments.rows
            ]
        )

    def received(self, q: Tensor, k: Tensor, padding_mask: Tensor | None = None, units: Units | None = None) -> Tensor:
        if units is None:
            return self.of_one_unit.received(q, k, padding_mask)
        segments = units.segments(self.segment_length)
        total = segments.unpack_flat(
            [
                self.within.received(segments.pack(q, rows), segments.pack(k, rows), rows.padding_mask).flatten()
                for rows in segments.rows
            ]
        )
        return total.masked_fill(units.unit < 0, 0.0)

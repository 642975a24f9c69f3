"""Attention inside the units of a text: sentences, turns, sections."""

from typing import ClassVar

from torch import Tensor

from pyramidions.nn.attention.blockwise import BlockwiseAttention
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.options import Length, Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("segments")
class SegmentsAttention(CoreAttention):
    """Full attention inside each unit of the text (Zhu et al. 2020, section 3.2).

    Units of more than ``segment_length`` positions are cut into segments of that length. Without units, a
    document is one. No matrix is larger than a segment's, and units of like length share a batch.

    Args:
        segment_length: positions in a segment, at most.
    """

    supports = frozenset({Feature.ITSELF, Feature.CAUSAL, Feature.RECEIVED, Feature.UNITS, Feature.KEY_BIAS})
    wide: ClassVar = {"segment_length": 64}
    narrow: ClassVar = {"segment_length": 4}

    def __init__(self, segment_length: Length = 256, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.segment_length = segment_length
        self.within = FullAttention(dropout)
        self.of_one_unit = BlockwiseAttention(segment_length, dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        if context.units is None:
            return self.of_one_unit(q, k, v, context)
        segments = context.units.segments(self.segment_length)
        return segments.unpack(
            [
                self.within(
                    *(segments.pack(x, rows) for x in (q, k, v)),
                    LayerContext(rows.padding_mask, is_causal=context.is_causal),
                )
                for rows in segments.rows
            ]
        )

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        if (units := context.units) is None:
            return self.of_one_unit.received(q, k, context)
        segments = units.segments(self.segment_length)
        total = segments.unpack_flat(
            [
                self.within.received(
                    segments.pack(q, rows), segments.pack(k, rows), LayerContext(rows.padding_mask)
                ).flatten()
                for rows in segments.rows
            ]
        )
        return total.masked_fill(units.unit < 0, 0.0)

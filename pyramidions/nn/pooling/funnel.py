"""Funnel pooling: a layer whose queries are pooled and whose keys and values are not."""

from typing import cast

from pyramidions.nn.block_layout import BlockLayout
from pyramidions.nn.functional.windows import window_mask, window_mean
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.pooling.core import POOLING, Pooled, WindowPooler
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.nn.sublayer import LayerContext, Memory


@POOLING.register("funnel")
class FunnelPooler(WindowPooler):
    """Strided mean of the queries, and the layer that attends with them (Dai et al. 2020, section 2.2).

    It has no provenance: every pooled vector has read all vectors of its block.

    Args:
        window: positions whose mean is one query, the configured length over the configured k.
        layer: its "cross_attention" comes first, from pooled queries to unpooled keys and values.
        confined_to: attention stays within blocks of this many positions, divisible by ``window``; None for no blocks.

    Raises:
        ValueError: ``confined_to`` is not divisible by ``window``.
    """

    upsampling = "repeat"
    has_provenance = False
    takes_layer = True

    def __init__(self, window: int, layer: Layer, confined_to: int | None = None) -> None:
        super().__init__(window)
        if confined_to is not None and confined_to % window:
            raise ValueError(
                f"The block size of funnel pooling ({confined_to}) must be divisible by its window ({window})."
            )
        self.layer = layer
        self.confined_to = confined_to

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        layout = BlockLayout(sequence.padding_mask, self.confined_to, sequence.lengths)
        blocks = layout.pack(sequence.x)
        # Keys and values are normalised as the queries are.
        memory = Memory(cast(Sublayer, self.layer.sublayers["cross_attention"]).entering(blocks), layout.attention_mask)
        # (N, M, D) -> (N, M/W, D)
        queries = window_mean(blocks, layout.padding_mask, self.window)
        padding_mask = window_mask(layout.padding_mask, self.window)
        y = self.layer(queries, LayerContext(padding_mask, (memory,)))
        mask = window_mask(sequence.padding_mask, self.window)
        confined_to = None if self.confined_to is None else self.confined_to // self.window
        lengths = None if sequence.lengths is None else [self.kept(length) for length in sequence.lengths]
        return Pooled(BlockLayout(mask, confined_to, lengths).unpack(y), mask)

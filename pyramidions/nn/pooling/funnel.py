"""Funnel pooling: a layer whose queries are pooled and whose keys and values are not."""

from torch import Tensor

from pyramidions.nn.context import Context
from pyramidions.nn.encoder_layer import EncoderLayer
from pyramidions.nn.functional.chunking import BlockLayout
from pyramidions.nn.functional.windows import window_mask, window_mean
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler, Upsampler


@POOLING.register("funnel")
class FunnelPooler(Pooler):
    """Strided mean of the queries, and the layer that attends with them (Dai et al. 2020, section 2.2).

    It has no provenance: every pooled vector has read all vectors of its block.

    Args:
        window: positions whose mean is one query, the configured length over the configured k.
        layer: attends from pooled queries to unpooled keys and values; its attention reads another sequence.
        confined_to: attention stays within blocks of this many positions, a multiple of ``window``; None where it
            does not.

    Raises:
        ValueError: blocks that windows do not fill.
    """

    def __init__(self, window: int, layer: EncoderLayer, confined_to: int | None = None) -> None:
        super().__init__()
        if confined_to is not None and confined_to % window:
            raise ValueError(
                f"The block size of funnel pooling ({confined_to}) must be divisible by its window ({window})."
            )
        self.window = window
        self.layer = layer
        self.confined_to = confined_to

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Pooled:
        layer = self.layer
        layout = BlockLayout(padding_mask, self.confined_to, context.lengths)
        blocks = layout.pack(x)
        keys, values = layer.self_attention.keys_values(layer.around_attention.entering(blocks))
        # (N, M, D) -> (N, M/W, D)
        y = window_mean(blocks, layout.padding_mask, self.window)
        y = layer.around_attention(
            y, lambda queries: layer.self_attention.attend(queries, keys, values, layout.attention_mask)
        )
        y = layer.around_feed_forward(y, layer.feed_forward)
        mask = window_mask(padding_mask, self.window)
        confined_to = None if self.confined_to is None else self.confined_to // self.window
        lengths = None if context.lengths is None else [self.kept(length) for length in context.lengths]
        return Pooled(BlockLayout(mask, confined_to, lengths).unpack(y), mask)

    def kept(self, length: int) -> int:
        return -(-length // self.window)


class FunnelUpsampler(Upsampler):
    """Repeats every vector, and adds what there was before pooling (Dai et al. 2020, section 2.3).

    Args:
        window: positions that a pooled vector stands for.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, x: Tensor, unpooled: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
        # (B, K, D) -> (B, K W, D) -> (B, L, D)
        return x.repeat_interleave(self.window, dim=1)[:, : unpooled.size(1)] + unpooled, padding_mask

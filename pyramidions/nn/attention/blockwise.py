"""Blockwise attention: full attention within blocks that do not overlap."""

from typing import ClassVar

from torch import Tensor

from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.chunking import chunked, pad_to_multiple
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.options import Length, Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("blockwise")
class BlockwiseAttention(CoreAttention):
    """Full attention within blocks of fixed length (Pietruszka et al. 2022, section 3.1).

    Args:
        block_size: positions in a block, M; window and stride at once.
    """

    supports = frozenset({Feature.ITSELF, Feature.CAUSAL, Feature.ACROSS, Feature.RECEIVED, Feature.KEY_BIAS})
    wide: ClassVar = {"block_size": 64}
    narrow: ClassVar = {"block_size": 4}

    def __init__(self, block_size: Length = 512, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.block_size = self.confined_to = block_size
        self.within = FullAttention(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        batch, heads, length, dim = q.shape
        self.refuse(q, k, context)
        size = min(self.block_size, length)
        if length == size:
            return self.within(q, k, v, context)
        out = self.within(_cut(q, size), _cut(k, size), _cut(v, size), _cut_context(context, k, size))
        # (B * L/M, H, M, E) -> (B, H, L, E)
        return out.unflatten(0, (batch, -1)).transpose(1, 2).reshape(batch, heads, -1, dim)[:, :, :length]

    def across(self) -> CoreAttention:
        return self.within

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        batch, length = k.size(0), k.size(2)
        size = min(self.block_size, length)
        total = self.within.received(_cut(q, size), _cut(k, size), _cut_context(context, k, size))
        # (B * L/M, M) -> (B, L)
        return total.reshape(batch, -1)[:, :length]


def _cut(x: Tensor, size: int) -> Tensor:
    # (B, H, L, E) -> (B, L/M, H, M, E) -> (B * L/M, H, M, E)
    return chunked(x, size, dim=2).transpose(1, 2).flatten(0, 1)


def _cut_context(context: LayerContext, k: Tensor, size: int) -> LayerContext:
    if context.padding_mask is None and k.size(2) % size == 0:
        return context
    # (B, L) -> (B * L/M, M)
    mask = pad_to_multiple(padding_of(k, context.padding_mask), size, dim=1, value=True).reshape(-1, size)
    return LayerContext(mask, is_causal=context.is_causal)

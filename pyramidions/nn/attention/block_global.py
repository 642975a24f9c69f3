"""Attention within blocks, and to the marked positions, as in PEGASUS-X."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.options import Length, Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("block_global")
class BlockGlobalAttention(CoreAttention):
    """Attention within blocks of fixed length, and to every marked position (Phang et al. 2022, sections 3.1 and 3.2).

    Blocks of every second layer are staggered: they begin half a block earlier. Thus information crosses block borders
    even without marked positions. What marked positions see themselves is computed around this kind. It cannot be
    causal.

    Args:
        block_size: positions in a block, M.
        staggered: blocks of layers 1, 3, ... begin half a block earlier.
    """

    supports = frozenset({Feature.ITSELF, Feature.RECEIVED, Feature.MARKS})
    wide: ClassVar = {"block_size": 128}
    narrow: ClassVar = {"block_size": 4}

    def __init__(
        self, block_size: Length = 512, staggered: bool = True, layer: int = 0, dropout: Probability = 0.0
    ) -> None:
        super().__init__()
        if staggered and block_size % 2:
            raise ValueError(f"`block_size` of staggered blocks must be even, but is {block_size}.")
        self.block_size = block_size
        self.earlier = block_size // 2 if staggered and layer % 2 else 0
        self.within = FullAttention(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        if self._sees_everything(k, context):
            return self.within(q, k, v, context)
        batch, mask = q.size(0), LayerContext(self._mask(k, context))
        mixed = self.within(self._cut(q, context), self._read(k, context), self._read(v, context), mask)
        # (B N, H, M, E) -> (B, H, N M, E)
        mixed = mixed.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2, 3)
        length = q.size(2) - _appended(context)
        return F.pad(mixed[:, :, self.earlier : self.earlier + length], (0, 0, 0, _appended(context)))

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        hidden, marks = padding_of(k, context.padding_mask), context.marks
        # What marked positions see is not this kind's.
        left_out = hidden if marks is None else hidden | marks.marked
        if self._sees_everything(k, context):
            return self.within.received(q, k, context, left_out)
        batch, keys, mask = q.size(0), self._read(k, context), self._mask(k, context)
        rows = self._cut_mask(left_out, context)
        weights = self.within.received(self._cut(q, context), keys, LayerContext(mask), rows).unflatten(0, (batch, -1))
        # (B, N, G + M) -> (B, N M)
        near = weights[..., -self.block_size :].flatten(1)
        length = k.size(2) - _appended(context)
        total = F.pad(near[:, self.earlier : self.earlier + length], (0, _appended(context)))
        if marks is not None:
            total = total.scatter_add(1, marks.positions, weights[..., : -self.block_size].sum(dim=1))
        return total.masked_fill(hidden, 0.0)

    def _sees_everything(self, k: Tensor, context: LayerContext) -> bool:
        return k.size(2) - _appended(context) <= self.block_size - self.earlier

    def _read(self, x: Tensor, context: LayerContext) -> Tensor:
        """Return keys, or values, of each block behind those of marked positions: (B N, H, G + M, E)."""
        marks, blocks = context.marks, self._cut(x, context)
        if marks is None:
            return blocks
        # (B, H, G, E) -> (B N, H, G, E)
        return torch.cat([marks.take(x).repeat_interleave(len(blocks) // len(x), dim=0), blocks], dim=2)

    def _mask(self, k: Tensor, context: LayerContext) -> Tensor | None:
        """Return which of these are hidden, (B N, G + M), or None for none."""
        marks, appended = context.marks, _appended(context)
        whole = not self.earlier and (k.size(2) - appended) % self.block_size == 0
        if context.padding_mask is None and whole and (marks is None or marks.most == appended):
            return None
        hidden = padding_of(k, context.padding_mask)
        if marks is None:
            return self._cut_mask(hidden, context)
        mask = self._cut_mask(hidden | marks.marked, context)
        # (B, G) -> (B N, G)
        return torch.cat([marks.absent.repeat_interleave(len(mask) // len(k), dim=0), mask], dim=1)

    def _cut(self, x: Tensor, context: LayerContext) -> Tensor:
        x = x[:, :, : x.size(2) - _appended(context)]
        # (B, H, L, E) -> (B, H, N, M, E) -> (B N, H, M, E)
        x = F.pad(x, (0, 0, self.earlier, -(x.size(2) + self.earlier) % self.block_size))
        return x.unflatten(2, (-1, self.block_size)).transpose(1, 2).flatten(0, 1)

    def _cut_mask(self, hidden: Tensor, context: LayerContext) -> Tensor:
        hidden = hidden[:, : hidden.size(1) - _appended(context)]
        # (B, L) -> (B N, M)
        hidden = F.pad(hidden, (self.earlier, -(hidden.size(1) + self.earlier) % self.block_size), value=True)
        return hidden.unflatten(1, (-1, self.block_size)).flatten(0, 1)


def _appended(context: LayerContext) -> int:
    return 0 if context.marks is None else context.marks.appended

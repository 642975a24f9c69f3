"""Strided attention: every position sees those near it, and every s-th of all."""

from typing import ClassVar

import torch
from torch import Tensor

from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.attention import Attended, attended, joined, received, tiled_attention
from pyramidions.nn.functional.interleaving import in_order, interleaved, interleaved_mask
from pyramidions.nn.functional.kernels import AUTO
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.functional.tiles import UNSEEN, Band, ByDistance
from pyramidions.nn.options import Length, Probability, Window
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("strided")
class StridedAttention(CoreAttention):
    """Attention to a window and to every ``stride``-th position (Child et al. 2019, section 4; Huang et al. 2021).

    Position i sees j if they are at most half a window apart, or if i - j is a multiple of the stride; one softmax goes
    over both. Time grows with L * (window + L / stride), memory with L. It cannot be causal.

    Args:
        stride: positions from one that is seen to the next; about the square root of the length keeps the cost low.
        window: positions on both sides together, half of them on each.
        split_heads: the first half of the heads, rounded up, sees the window alone, the others every ``stride``-th
            position alone.
    """

    supports = frozenset({Feature.ITSELF, Feature.RECEIVED, Feature.KEY_BIAS})
    wide: ClassVar = {"window": 64}
    narrow: ClassVar = {"stride": 3, "window": 2}

    def __init__(
        self, stride: Length = 32, window: Window = 128, split_heads: bool = False, dropout: Probability = 0.0
    ) -> None:
        super().__init__()
        self.stride = stride
        self.side = window // 2
        self.split_heads = split_heads
        self.dropout = dropout
        self.everywhere = FullAttention(dropout)
        if split_heads:
            self.window_kernels = AUTO

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        hidden = padding_of(k, context.padding_mask)
        if not self.split_heads:
            return joined(*self._parts(q, k, v, hidden, self.dropped)).mixed
        near = -(-q.size(1) // 2)
        first = q[:, :near], k[:, :near], v[:, :near]
        window = tiled_attention(*first, Band(hidden, self.side), dropout=self.dropped, kernels=self.window_kernels)
        rows, keys, values = (interleaved(x[:, near:], self.stride) for x in (q, k, v))
        mixed = self.everywhere(rows, keys, values, LayerContext(interleaved_mask(hidden, self.stride)))
        return torch.cat([window, in_order(mixed, self.stride, q.size(2))], dim=1)

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        hidden = padding_of(k, context.padding_mask)
        absent = interleaved_mask(hidden, self.stride)
        if self.split_heads:
            near = -(-q.size(1) // 2)
            (window,) = received(q[:, :near], k[:, :near], Band(hidden, self.side), hidden[:, None, :, None])
            rows, keys = (interleaved(x[:, near:], self.stride) for x in (q, k))
            far = self.everywhere.received(rows, keys, LayerContext(absent))[:, None, :, None]
        else:
            total = joined(*self._parts(q, k, k[..., :1], hidden, 0.0)).total  # torch 2.6 pads no empty values
            (window,) = received(q, k, self._window(k, hidden), hidden[:, None, :, None], total=total)
            rows, keys, totals = (interleaved(x, self.stride) for x in (q, k, total))
            plan, bias = self._beyond(keys, absent)
            (far,) = received(rows, keys, plan, absent[:, None, :, None], bias, totals)
        far = in_order(far, self.stride, k.size(2)).sum(dim=(1, 3))
        return (window.sum(dim=(1, 3)) + far).masked_fill(hidden, 0.0)

    def _parts(self, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, dropout: float) -> tuple[Attended, Attended]:
        """Return what queries read within the window, and what they read beyond it."""
        window = attended(q, k, v, self._window(k, hidden), dropout=dropout)
        rows, keys, values = (interleaved(x, self.stride) for x in (q, k, v))
        plan, bias = self._beyond(keys, interleaved_mask(hidden, self.stride))
        far = attended(rows, keys, values, plan, bias, dropout)
        return window, Attended(*(in_order(x, self.stride, q.size(2)) for x in far))

    def _window(self, k: Tensor, hidden: Tensor) -> Band:
        return Band(hidden, min(self.side, k.size(2) - 1))

    def _beyond(self, k: Tensor, hidden: Tensor) -> tuple[Band, ByDistance]:
        """Return which positions of one residue a query sees here: not those inside the window, which it sees there."""
        reach = k.size(2) - 1
        distance = torch.arange(-reach, reach + 1, device=k.device)[None]
        near = distance.abs() * self.stride <= self.side
        bias = torch.zeros(near.shape, dtype=torch.float32, device=k.device).masked_fill(near, UNSEEN)
        return Band(hidden, reach), ByDistance(bias)

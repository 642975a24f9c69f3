"""Strided attention: every position sees those near it, and every s-th of all."""

from typing import ClassVar

import torch
from torch import Tensor

from pyramidions.nn.attention.core import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.distance_attention import (
    UNSEEN,
    Attended,
    attend_by_distance,
    joined,
    received_by_distance,
)
from pyramidions.nn.functional.interleaving import in_order, interleaved, interleaved_mask
from pyramidions.nn.functional.local_window import Further, local_window_attention, received_in_window
from pyramidions.nn.functional.masking import padding_of
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
        dropout: probability of dropping an attention weight while training.
    """

    supports = frozenset({Feature.ITSELF, Feature.RECEIVED})
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

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        hidden, dropout = padding_of(k, context.padding_mask), self.dropout if self.training else 0.0
        if not self.split_heads:
            return joined(*self._parts(q, k, v, hidden, dropout)).mixed
        near = -(-q.size(1) // 2)
        window = local_window_attention(q[:, :near], k[:, :near], v[:, :near], hidden, self.side, dropout)
        rows, keys, values = (interleaved(x[:, near:], self.stride) for x in (q, k, v))
        mixed = self.everywhere(rows, keys, values, LayerContext(interleaved_mask(hidden, self.stride)))
        return torch.cat([window, in_order(mixed, self.stride, q.size(2))], dim=1)

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        hidden = padding_of(k, context.padding_mask)
        absent = interleaved_mask(hidden, self.stride)
        if self.split_heads:
            near = -(-q.size(1) // 2)
            nothing = Further(k[:, :near, :0], k[:, :near, :0], hidden[:, :0])
            window, _ = received_in_window(q[:, :near], k[:, :near], hidden, hidden, self.side, nothing)
            rows, keys = (interleaved(x[:, near:], self.stride) for x in (q, k))
            far = self.everywhere.received(rows, keys, LayerContext(absent))
        else:
            total = joined(*self._parts(q, k, k[..., :0], hidden, 0.0)).total
            window = received_by_distance(q, k, hidden, hidden, self._window(k), total)
            rows, keys, totals = (interleaved(x, self.stride) for x in (q, k, total))
            far = received_by_distance(rows, keys, absent, absent, self._beyond(k), totals)
        far = in_order(far[:, None, :, None], self.stride, k.size(2))[:, 0, :, 0]
        return (window + far).masked_fill(hidden, 0.0)

    def _parts(self, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, dropout: float) -> tuple[Attended, Attended]:
        """Return what queries read within the window, and what they read beyond it."""
        window = attend_by_distance(q, k, v, hidden, self._window(k), dropout)
        rows, keys, values = (interleaved(x, self.stride) for x in (q, k, v))
        absent = interleaved_mask(hidden, self.stride)
        far = attend_by_distance(rows, keys, values, absent, self._beyond(k), dropout)
        return window, Attended(*(in_order(x, self.stride, q.size(2)) for x in far))

    def _window(self, k: Tensor) -> Tensor:
        reach = min(self.side, k.size(2) - 1)
        return torch.zeros(1, 2 * reach + 1, dtype=torch.float32, device=k.device)

    def _beyond(self, k: Tensor) -> Tensor:
        """Return the bias among positions of one residue: those within the window are seen there."""
        reach = -(-k.size(2) // self.stride) - 1
        distance = torch.arange(-reach, reach + 1, device=k.device)[None]
        near = distance.abs() * self.stride <= self.side
        return torch.zeros(1, 2 * reach + 1, dtype=torch.float32, device=k.device).masked_fill(near, UNSEEN)

"""Sliding-window attention: every position sees those near it, and the marked ones."""

from typing import ClassVar

import torch
from torch import Tensor

from pyramidions.base.arguments import Count, CountOrZero
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.attention.state import KeysValues
from pyramidions.nn.functional.attention import received, scaled_dot_product_attention, tiled_attention
from pyramidions.nn.functional.interleaving import (
    check_dilation,
    head_groups,
    in_order,
    in_window,
    interleaved,
    interleaved_mask,
)
from pyramidions.nn.functional.kernels import AUTO
from pyramidions.nn.functional.masking import distances_back, padding_of
from pyramidions.nn.functional.tiles import Band
from pyramidions.nn.marks import Marks
from pyramidions.nn.options import Probability, Window
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, State


@ATTENTION.register("sliding_window")
class SlidingWindowAttention(CoreAttention):
    """Attention within a window of fixed length around each position (Beltagy et al. 2020, section 3.1).

    Time and memory are linear in the length. Marked positions are seen from everywhere; what they see themselves is
    computed around this kind, as for any kind that reads marks. Where it is causal, positions see themselves and the
    half of their window that stands before them, and there can be no marks. Steps keep all keys.

    Args:
        window: positions on both sides together, half of them on each; LED's released models have 1024.
        dilation: dilated heads see positions that are so far apart, and as many of them.
        dilated_heads: how many of the last heads are dilated.
    """

    supports = frozenset({Feature.ITSELF, Feature.CAUSAL, Feature.STEPS, Feature.RECEIVED, Feature.MARKS})
    wide: ClassVar = {"window": 64}
    narrow: ClassVar = {"window": 4, "dilation": 2, "dilated_heads": 1}

    def __init__(
        self, window: Window = 512, dilation: Count = 1, dilated_heads: CountOrZero = 0, dropout: Probability = 0.0
    ) -> None:
        super().__init__()
        check_dilation(dilation, dilated_heads)
        self.side = window // 2
        self.dilation = dilation
        self.dilated_heads = dilated_heads
        self.dropout = dropout
        self.everywhere = FullAttention(dropout)
        self.window_kernels = AUTO

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        marks = context.marks
        if marks is not None and context.is_causal:
            raise ValueError("SlidingWindowAttention cannot be causal with marks, which all positions see.")
        if self._sees_everything(k):
            return self.everywhere(q, k, v, context)
        hidden = _hidden(k, context.padding_mask, marks)
        further = () if marks is None else (marks.take(k), marks.take(v), marks.absent)
        parts = []
        for heads, dilation in head_groups(q.size(1), self.dilated_heads, self.dilation):
            rows, keys, values = (interleaved(x[:, heads], dilation) for x in (q, k, v))
            plan = self._plan(hidden, further, heads, dilation, ahead=not context.is_causal)
            mixed = tiled_attention(rows, keys, values, plan, dropout=self.dropped, kernels=self.window_kernels)
            parts.append(in_order(mixed, dilation, q.size(2)))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def new_state(self) -> State:
        return KeysValues()

    def step(self, q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None, state: State) -> Tensor:
        assert isinstance(state, KeysValues)
        k, v = state.extend(k, v)
        if self._sees_everything(k):
            return self.everywhere(q, k, v, LayerContext(blocked))
        away, parts = distances_back(blocked, k), []
        for heads, dilation in head_groups(q.size(1), self.dilated_heads, self.dilation):
            near = in_window(away, self.side, dilation)
            seen = near if blocked is None else near & (blocked == 0)
            parts.append(scaled_dot_product_attention(q[:, heads], k[:, heads], v[:, heads], seen, self.dropped))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        real, marks = padding_of(k, context.padding_mask), context.marks
        # What marked positions see is not this kind's.
        rows = real if marks is None else real | marks.marked
        if self._sees_everything(k):
            return self.everywhere.received(q, k, context, rows)
        hidden = _hidden(k, context.padding_mask, marks)
        further = () if marks is None else (marks.take(k), marks.take(k), marks.absent)
        total = torch.zeros(real.shape, dtype=torch.float32, device=k.device)
        for heads, dilation in head_groups(q.size(1), self.dilated_heads, self.dilation):
            near, *far = received(
                interleaved(q[:, heads], dilation),
                interleaved(k[:, heads], dilation),
                self._plan(hidden, further, heads, dilation),
                interleaved_mask(rows, dilation)[:, None, :, None],
            )
            total += in_order(near, dilation, k.size(2)).sum(dim=(1, 3))
            if marks is not None and far:
                # (Bd, H', G, 1) -> (B, G), the residues of a document one after the other
                total.scatter_add_(1, marks.positions, far[0].unflatten(0, (-1, dilation)).sum(dim=(1, 2, 4)))
        return total.masked_fill(real, 0.0)

    def _sees_everything(self, k: Tensor) -> bool:
        return k.size(2) <= self.side + 1 and not self.dilated_heads

    def _plan(
        self, hidden: Tensor, further: tuple[Tensor, ...], heads: slice, dilation: int, *, ahead: bool = True
    ) -> Band:
        """Return what ``heads`` see near them and everywhere, once per residue."""
        # (B, H, G, E) -> (Bd, H', G, E), (B, G) -> (Bd, G)
        own = (x[:, heads] if x.dim() == 4 else x for x in further)
        repeated = (x if dilation == 1 else x.repeat_interleave(dilation, dim=0) for x in own)
        return Band(interleaved_mask(hidden, dilation), self.side, True, ahead, *repeated)


def _hidden(k: Tensor, padding_mask: Tensor | None, marks: Marks | None) -> Tensor:
    """Return the keys that no window shows: padding, and marked ones, which are seen anyway: (B, L)."""
    padding_mask = padding_of(k, padding_mask)
    return padding_mask if marks is None else padding_mask | marks.marked

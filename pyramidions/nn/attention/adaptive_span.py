"""Attention with adaptive span: each head learns how far it sees."""

from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Range
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.functional.attention import received, tiled_attention
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.functional.tiles import UNSEEN, Band, ByDistance
from pyramidions.nn.options import Length, Probability, Window
from pyramidions.nn.regularised import Regularised
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("adaptive_span")
class AdaptiveSpanAttention(Regularised, CoreAttention):
    """Attention within a window whose width each head learns (Sukhbaatar et al. 2019, section 2.2).

    A weight at distance d is multiplied by min(1, 1 + (z - d) / ramp), or 0 where that is negative, and the weights
    are normalised again. The span z of a head is half of ``max_window`` times the sigmoid of a parameter, which starts
    at 1. Time and memory are linear in the length; in evaluation they grow with the longest span. It cannot be causal.

    Args:
        max_window: positions on both sides together that a head may see at most, half of them on each.
        ramp: positions over which weights fall to 0 beyond a span.
        penalty: weight of the mean span of the heads, in positions, in the loss of each token; 0 for none.
    """

    supports = frozenset({Feature.ITSELF, Feature.RECEIVED})
    wide: ClassVar = {"max_window": 64}
    narrow: ClassVar = {"max_window": 4, "ramp": 2}

    def __init__(
        self,
        num_heads: int,
        max_window: Window = 512,
        ramp: Length = 16,
        penalty: Annotated[float, Range(0)] = 0.0,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        self.side = max_window // 2
        self.ramp = ramp
        self.penalty = penalty
        self.dropout = dropout
        self.span = nn.Parameter(torch.ones(num_heads))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        plan, bias = self._seen(k, padding_of(k, context.padding_mask))
        return tiled_attention(q, k, v, plan, bias, self.dropped)

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        hidden = padding_of(k, context.padding_mask)
        plan, bias = self._seen(k, hidden)
        (weights,) = received(q, k, plan, hidden[:, None, :, None], bias)
        return weights.sum(dim=(1, 3)).masked_fill(hidden, 0.0)

    def spans(self) -> Tensor:
        """Return how far each head sees in either direction before its weights fall: (H,), in positions."""
        return self.side * torch.sigmoid(full_precision(self.span))

    def regulariser(self) -> Tensor | None:
        return self.penalty * self.spans().mean() if self.penalty else None

    def _seen(self, k: Tensor, hidden: Tensor) -> tuple[Band, ByDistance]:
        """Return what the longest span shows, and the logarithm of what weights are multiplied by in it."""
        spans = self.spans()
        reach = min(self.side, k.size(2) - 1)
        if not self.training:
            reach = min(reach, int(spans.max()) + self.ramp)
        distance = torch.arange(-reach, reach + 1, device=k.device).abs()
        kept = ((spans[:, None] - distance) / self.ramp + 1).clamp(max=1.0)
        bias = torch.where(kept > 0, kept, 1.0).log().masked_fill(kept <= 0, UNSEEN)
        return Band(hidden, reach), ByDistance(bias)

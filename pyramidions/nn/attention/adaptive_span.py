"""Attention with adaptive span: each head learns how far it sees."""

from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Range
from pyramidions.nn.attention.core import ATTENTION, CoreAttention, Feature
from pyramidions.nn.functional.distance_attention import UNSEEN, attend_by_distance, received_by_distance
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.options import Length, Probability, Window
from pyramidions.nn.regularised import Regularised
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("adaptive_span")
class AdaptiveSpanAttention(CoreAttention, Regularised):
    """Attention within a window whose width each head learns (Sukhbaatar et al. 2019, section 2.2).

    A weight at distance d is multiplied by min(1, 1 + (z - d) / ramp), or 0 where that is negative, and the weights
    are normalised again. The span z of a head is half of ``max_window`` times the sigmoid of a parameter, which starts
    at 1. Time and memory are linear in the length; in evaluation they grow with the longest span. It cannot be causal.

    Args:
        num_heads: H.
        max_window: positions on both sides together that a head may see at most, half of them on each.
        ramp: positions over which weights fall to 0 beyond a span.
        penalty: weight of the mean span of the heads, in positions, in the loss of each token; 0 for none.
        dropout: probability of dropping an attention weight while training.
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
        hidden = padding_of(k, context.padding_mask)
        return attend_by_distance(q, k, v, hidden, self._bias(k), self.dropout if self.training else 0.0).mixed

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        hidden, bias = padding_of(k, context.padding_mask), self._bias(k).detach()
        total = attend_by_distance(q, k, k[..., :0], hidden, bias).total
        return received_by_distance(q, k, hidden, hidden, bias, total).masked_fill(hidden, 0.0)

    def spans(self) -> Tensor:
        """Return how far each head sees in either direction before its weights fall: (H,), in positions."""
        return self.side * torch.sigmoid(self.span.to(torch.promote_types(self.span.dtype, torch.float32)))

    def regulariser(self) -> Tensor | None:
        return self.penalty * self.spans().mean() if self.penalty else None

    def _bias(self, k: Tensor) -> Tensor:
        """Return the logarithm of what weights are multiplied by, for each distance: (H, 2R + 1)."""
        spans = self.spans()
        reach = min(self.side, k.size(2) - 1)
        if not self.training:
            reach = min(reach, int(spans.max()) + self.ramp)
        distance = torch.arange(-reach, reach + 1, device=k.device).abs()
        kept = ((spans[:, None] - distance) / self.ramp + 1).clamp(max=1.0)
        return torch.where(kept > 0, kept, 1.0).log().masked_fill(kept <= 0, UNSEEN)

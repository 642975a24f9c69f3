"""Attention with adaptive span: each head learns how far it sees."""

import math

import torch
from torch import Tensor, nn

from pyramidions.nn.attention.core import ATTENTION, CoreAttention
from pyramidions.nn.functional.distance_attention import UNSEEN, attend_by_distance, received_by_distance
from pyramidions.nn.functional.dropout import check_probability
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.regularised import Regularised


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

    Raises:
        ValueError: a window that is odd or below 2, a ramp below 1, or a penalty below 0.
    """

    crosses = False
    can_be_causal = False
    lengths = ("max_window", "ramp")

    def __init__(
        self, num_heads: int, max_window: int = 512, ramp: int = 16, penalty: float = 0.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if max_window < 2 or max_window % 2:
            raise ValueError(f"`max_window` must be even and at least 2, but is {max_window}.")
        if ramp < 1:
            raise ValueError(f"`ramp` must be at least 1, but is {ramp}.")
        if not 0 <= penalty < math.inf:
            raise ValueError(f"`penalty` must be at least 0, but is {penalty}.")
        self.side = max_window // 2
        self.ramp = ramp
        self.penalty = penalty
        self.dropout = check_probability("dropout", dropout)
        self.span = nn.Parameter(torch.ones(num_heads))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        self.refuse(q, k, is_causal)
        hidden = padding_of(k, key_padding_mask)
        return attend_by_distance(q, k, v, hidden, self._bias(k), self.dropout if self.training else 0.0).mixed

    def received(self, q: Tensor, k: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        hidden, bias = padding_of(k, padding_mask), self._bias(k).detach()
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

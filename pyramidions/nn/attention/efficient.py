"""Efficient attention: keys are summed up before queries read them."""

import torch
from torch import Tensor

from pyramidions.nn.attention.core import ATTENTION, CoreAttention
from pyramidions.nn.functional.local_window import local_window_attention


@ATTENTION.register("efficient")
class EfficientAttention(CoreAttention):
    """Attention of linear cost (Shen et al. 2021, section 3.2), some heads local instead.

    softmax(Q) (softmax(K)^T V): queries are normalised over their dimensions, keys over the sequence. The first heads
    attend within a window, without which long inputs are summarized badly (Pietruszka et al. 2022, appendix C.1).

    Args:
        local_heads: heads that attend within a window.
        window: how far those see in either direction.
        dropout: probability of dropping an attention weight of the local heads while training.

    Raises:
        ValueError: fewer than 0 local heads, or a window below 1.
    """

    crosses = False
    is_exact = False
    can_be_causal = False

    def __init__(self, local_heads: int = 2, window: int = 128, dropout: float = 0.0) -> None:
        super().__init__()
        if local_heads < 0:
            raise ValueError(f"`local_heads` must be at least 0, but is {local_heads}.")
        if window < 1:
            raise ValueError(f"`window` must be at least 1, but is {window}.")
        self.local_heads = local_heads
        self.window = window
        self.dropout = dropout

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        self.refuse(q, k, is_causal)
        if key_padding_mask is None:
            key_padding_mask = torch.zeros(k.size(0), k.size(2), dtype=torch.bool, device=k.device)
        local = min(self.local_heads, q.size(1))
        rest = q.size(1) - local
        dropout = self.dropout if self.training else 0.0
        parts = []
        if local:
            near = q[:, :local], k[:, :local], v[:, :local]
            parts.append(local_window_attention(*near, key_padding_mask, self.window, dropout))
        if rest:
            parts.append(_efficient(q[:, local:], k[:, local:], v[:, local:], key_padding_mask))
        return torch.cat(parts, dim=1)


def _efficient(q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor) -> Tensor:
    # A document of pure padding is summed up all the same: a softmax over nothing would be NaN.
    hidden = (padding_mask & ~padding_mask.all(dim=1, keepdim=True))[:, None, :, None]
    keys = k.masked_fill(hidden, -torch.inf).softmax(dim=2)
    # (B, H, E, L) @ (B, H, L, E) -> (B, H, E, E)
    summary = keys.transpose(-1, -2) @ v.masked_fill(hidden, 0.0)
    return q.softmax(dim=-1) @ summary

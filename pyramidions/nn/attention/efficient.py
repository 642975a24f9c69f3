"""Efficient attention: keys are summed up before queries read them."""

from typing import ClassVar

import torch
from torch import Tensor

from pyramidions.base.arguments import CountOrZero
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.local_heads import LocalHeads
from pyramidions.nn.functional.precision import full_type
from pyramidions.nn.options import Probability, Window
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("efficient")
class EfficientAttention(CoreAttention):
    """Attention of linear cost (Shen et al. 2021, section 3.2), some heads local instead.

    softmax(Q) (softmax(K)^T V): queries are normalised over their dimensions, keys over the sequence.

    Args:
        local_heads: heads that attend within a window.
        local_window: positions on both sides together that those see, half of them on each.
    """

    supports = frozenset({Feature.ITSELF})
    narrow: ClassVar = {"local_heads": 1, "local_window": 4}
    is_exact = False

    def __init__(self, local_heads: CountOrZero = 2, local_window: Window = 256, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.local = LocalHeads(local_heads, local_window, dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        return self.local.beside(_efficient, q, k, v, context.padding_mask)


def _efficient(q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor) -> Tensor:
    # A document of pure padding is summed up all the same: a softmax over nothing would be NaN.
    blocked = (padding_mask & ~padding_mask.all(dim=1, keepdim=True))[:, None, :, None]
    # In float32: a weight of one among thousands of keys is not a normal number of half precision.
    with torch.autocast(q.device.type, enabled=False):
        full = full_type(q.dtype)
        keys = k.masked_fill(blocked, -torch.inf).softmax(dim=2, dtype=full)
        # (B, H, E, L) @ (B, H, L, E) -> (B, H, E, E)
        summary = keys.transpose(-1, -2) @ v.masked_fill(blocked, 0.0).to(full)
        return (q.softmax(dim=-1, dtype=full) @ summary).to(v.dtype)

"""Full attention: every query sees every key."""

import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.attention.core import ATTENTION, CoreAttention
from pyramidions.nn.functional.masking import attendable


@ATTENTION.register("full")
class FullAttention(CoreAttention):
    """Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1).

    Args:
        dropout: probability of dropping an attention weight while training.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        key_padding_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        if key_padding_mask is None and (not is_causal or q.size(2) == k.size(2)):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=is_causal)
        mask = attendable(key_padding_mask, is_causal, q.size(2), k.size(2), q.device)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)

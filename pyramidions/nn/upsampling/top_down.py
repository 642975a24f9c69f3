"""Top-down upsampling: the vectors before pooling read the pooled ones."""

from typing import ClassVar

from torch import nn

from pyramidions.base.arguments import Count
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.sublayer import Memory
from pyramidions.nn.upsampling.core import UPSAMPLING, Upsampler


@UPSAMPLING.register("top_down")
class TopDownUpsampler(Upsampler):
    """Goes on with the vectors before pooling, which correct themselves by the pooled ones (Pang et al. 2023).

    Each of the encoder's last layers has a cross-attention to the pooled vectors between its self-attention and its
    feed-forward part.

    Args:
        norm: of the pooled vectors, where layers are pre-norm and leave them unnormalised; or None.
        layers: how many of the encoder's last layers these are.
    """

    is_read: ClassVar = True

    def __init__(self, norm: nn.Module | None = None, layers: Count = 1) -> None:
        super().__init__()
        self.norm = norm or nn.Identity()
        self.layers = layers

    def forward(self, pooled: Sequence, unpooled: Sequence) -> Sequence:
        memory = Memory(self.norm(pooled.x), pooled.attention_mask, key_bias=pooled.key_bias)
        return unpooled._replace(above=memory)

"""Upsampling: the role, the registry of kinds, and the kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from pyramidions.base.arguments import Count
from pyramidions.base.registry import Registry
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.sublayer import Memory


class Upsampler(nn.Module, ABC):
    """Brings a pooled sequence back to its length before pooling."""

    #: whether it undoes pooling by a fixed ratio alone
    takes_window: ClassVar[bool] = False
    #: whether ``layers`` is an option: so many of the encoder's last layers run after it, at the length before pooling,
    #: and cross-attend to the pooled vectors; it then undoes all poolings at once
    is_read: ClassVar[bool] = False
    layers: int = 0

    @abstractmethod
    def forward(self, pooled: Sequence, unpooled: Sequence) -> Sequence:
        """Return what goes on at the length before pooling, from the output (K) of the layers after the pooling."""


UPSAMPLING: Registry[Upsampler] = Registry("upsampling")


@UPSAMPLING.register("repeat")
class RepeatUpsampler(Upsampler):
    """Repeats every vector, and adds the vectors before pooling (Dai et al. 2020, section 2.3)."""

    takes_window = True

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, pooled: Sequence, unpooled: Sequence) -> Sequence:
        # (B, K, D) -> (B, K W, D) -> (B, L, D)
        repeated = pooled.x.repeat_interleave(self.window, dim=1)[:, : unpooled.x.size(1)]
        return unpooled._replace(x=repeated + unpooled.x)


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

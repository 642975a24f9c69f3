"""The role of an upsampler, the registry of kinds, and repetition."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from pyramidions.base.registry import Registry
from pyramidions.nn.sequence import Sequence


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
    """Repeats every vector, and adds the vectors before pooling (Dai et al. 2020, section 2.3).

    Args:
        window: positions that a pooled vector stands for.
    """

    takes_window = True

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, pooled: Sequence, unpooled: Sequence) -> Sequence:
        # (B, K, D) -> (B, K W, D) -> (B, L, D)
        repeated = pooled.x.repeat_interleave(self.window, dim=1)[:, : unpooled.x.size(1)]
        return unpooled._replace(x=repeated + unpooled.x)

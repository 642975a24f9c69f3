"""The role of an upsampler, the registry of kinds, and repetition."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.sequence import Sequence


class Upsampler(nn.Module, ABC):
    """Brings a pooled sequence back to its length before pooling."""

    #: whether it undoes pooling by a fixed ratio alone
    takes_window: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor, unpooled: Sequence) -> Tensor:
        """Return (B, L, D), given ``x`` (B, K, D) and the sequence before pooling, of length L."""


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

    def forward(self, x: Tensor, unpooled: Sequence) -> Tensor:
        # (B, K, D) -> (B, K W, D) -> (B, L, D)
        return x.repeat_interleave(self.window, dim=1)[:, : unpooled.x.size(1)] + unpooled.x

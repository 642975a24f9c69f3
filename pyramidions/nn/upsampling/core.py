"""The role of an upsampler, and the registry of kinds."""

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

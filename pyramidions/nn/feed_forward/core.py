"""The role of a feed-forward part, and the registry of kinds."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from pyramidions.base.registry import Registry
from pyramidions.nn.sublayer import LayerContext, SublayerFunction


class FeedForward(SublayerFunction):
    """Transforms each position on its own."""

    confined_to = 1
    #: options that fit small widths
    narrow: ClassVar[Mapping[str, int]] = {}

    @abstractmethod
    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """(B, L, D) -> (B, L, D)."""


FEED_FORWARD: Registry[FeedForward] = Registry("feed-forward")

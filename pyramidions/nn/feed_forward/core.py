"""The role of a feed-forward part, and the registry of kinds."""

from abc import abstractmethod

from torch import Tensor

from pyramidions.nn.sublayer import LayerContext, SublayerFunction
from pyramidions.registry import Registry


class FeedForward(SublayerFunction):
    """Transforms each position on its own."""

    confined_to = 1

    @abstractmethod
    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """(B, L, D) -> (B, L, D)."""


FEED_FORWARD: Registry[FeedForward] = Registry("feed-forward")

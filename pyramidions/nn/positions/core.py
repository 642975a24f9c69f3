"""The role of positions, and the registry of kinds."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from pyramidions.base.registry import Registry


class Positions(nn.Module, ABC):
    """Tells a model the position of a token in its document."""

    @abstractmethod
    def forward(self, position: Tensor, length: int) -> Tensor:
        """Return the embeddings of ``position`` (...), from 0 to ``length`` - 1, in float32: (..., D)."""


POSITIONS: Registry[Positions] = Registry("positions")

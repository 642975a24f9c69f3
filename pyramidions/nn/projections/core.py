"""The role of projections, and the registry of kinds."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from pyramidions.registry import Registry


class Projections(nn.Module, ABC):
    """Projects to queries, keys and values, and from the mixed heads to the output of attention."""

    @abstractmethod
    def queries(self, x: Tensor) -> Tensor:
        """(B, Lq, D) -> (B, H, Lq, E)."""

    @abstractmethod
    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, Lk, D) -> (B, H, Lk, E) twice."""

    @abstractmethod
    def output(self, mixed: Tensor) -> Tensor:
        """Join the heads' outputs: (B, H, Lq, E) -> (B, Lq, D)."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of self-attention: (B, L, D) -> (B, H, L, E) three times."""
        return self.queries(x), *self.keys_values(x)


PROJECTIONS: Registry[Projections] = Registry("projections")

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

    def reads_unprojected(self, queries: int) -> bool:
        """Return whether so few queries a document had better read vectors by `scores` and `mixed`."""
        return False

    def scores(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return the scores of ``rows`` (B, G, D) with ``x`` (B, L, D), scaled by 1 / sqrt(E): (B, H, G, L)."""
        q, (k, _) = self.queries(rows), self.keys_values(x)
        return q @ k.mT * q.size(-1) ** -0.5

    def mixed(self, weights: Tensor, x: Tensor) -> Tensor:
        """Mix the values of ``x`` (B, L, D) by ``weights`` (B, H, G, L): (B, H, G, E)."""
        return weights @ self.keys_values(x)[1]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of self-attention: (B, L, D) -> (B, H, L, E) three times."""
        return self.queries(x), *self.keys_values(x)


PROJECTIONS: Registry[Projections] = Registry("projections")

"""Residual connections: how sublayers become layers, and layers a stack."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.registry import Registry


class ResidualConnection(nn.Module):
    """Adds a sublayer's output to its input, normalised before the sublayer or after the sum.

    Args:
        embed_dim: D.
        dropout: probability of dropping a value of the sublayer's output while training.
        normalize_before: pre-norm (Xiong et al. 2020) instead of post-norm (Vaswani et al. 2017).
    """

    def __init__(self, embed_dim: int, dropout: float = 0.0, normalize_before: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = Dropout(dropout)
        self.normalize_before = normalize_before

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        if self.normalize_before:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))

    def entering(self, x: Tensor) -> Tensor:
        """Return what the sublayer reads: (B, L, D) -> (B, L, D)."""
        return self.norm(x) if self.normalize_before else x


class ResidualStack(nn.Module, ABC):
    """Runs layers one after the other."""

    @abstractmethod
    def forward(self, layers: Iterable[Callable[..., Tensor]], x: Tensor, *context: Tensor | None) -> Tensor:
        """Run ``layers``, each with ``context`` (masks, a memory): (B, L, D) -> (B, L, D)."""


RESIDUAL: Registry[ResidualStack] = Registry("residual")


@RESIDUAL.register("plain")
class PlainResidualStack(ResidualStack):
    """Every layer reads what the one before wrote; all activations are kept for the backward pass."""

    def forward(self, layers: Iterable[Callable[..., Tensor]], x: Tensor, *context: Tensor | None) -> Tensor:
        for layer in layers:
            x = layer(x, *context)
        return x


class RecomputingStack(ResidualStack):
    """Keeps of each layer its input only, and computes the rest again in the backward pass (Chen et al. 2016).

    Args:
        stack: how the layers are run.
    """

    def __init__(self, stack: ResidualStack) -> None:
        super().__init__()
        self.stack = stack

    def forward(self, layers: Iterable[Callable[..., Tensor]], x: Tensor, *context: Tensor | None) -> Tensor:
        return self.stack([partial(checkpoint, layer, use_reentrant=False) for layer in layers], x, *context)

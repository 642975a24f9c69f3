"""The role of a pooler, what it hands on, and the registry of kinds."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from pyramidions.nn.registry import Registry


class Pooled(NamedTuple):
    """What a pooler hands on.

    Attributes:
        x: (B, K, D).
        padding_mask: (B, K), True at padding.
        sources: (B, K, G), which inputs each vector is made of, the strongest first; None where a kind has none.
        weights: (B, K, G), how much of each; None where a kind has none.
    """

    x: Tensor
    padding_mask: Tensor
    sources: Tensor | None = None
    weights: Tensor | None = None


class Pooler(nn.Module, ABC):
    """Shortens a sequence of representations."""

    @abstractmethod
    def forward(self, x: Tensor, padding_mask: Tensor) -> Pooled:
        """Pool ``x`` (B, L, D) with ``padding_mask`` (B, L) to at most K vectors a document."""


POOLING: Registry[Pooler] = Registry("pooling")

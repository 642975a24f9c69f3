"""The role of a pooler, what it reads and hands on, and the registry of kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.registry import Registry
from pyramidions.nn.sequence import Sequence


class Pooled(NamedTuple):
    """What a pooler hands on.

    Attributes:
        x: (B, K, D).
        padding_mask: (B, K), True at padding.
        sources: (B, K, G), which inputs each vector is made of; None where a kind has none.
        weights: (B, K, G), how much of each; None where a kind has none.
    """

    x: Tensor
    padding_mask: Tensor
    sources: Tensor | None = None
    weights: Tensor | None = None

    def sharpness(self) -> tuple[Tensor, Tensor] | None:
        """Return how much of each vector its strongest member makes up, and which vectors that says something of.

        Returns:
            (B, K), the largest weights, and (B, K), True where a real vector has two members or more; None where a
            kind has no provenance.
        """
        if self.weights is None or self.sources is None:
            return None
        several = (self.sources != self.sources[..., :1]).any(-1)
        return self.weights.amax(-1), several & ~self.padding_mask

    def of_strongest(self, values: Tensor | None) -> Tensor | None:
        """Return, of ``values`` (B, L), those of each vector's strongest member: (B, K); None without provenance."""
        if values is None or self.weights is None or self.sources is None:
            return None
        strongest = self.weights.argmax(dim=-1, keepdim=True)
        return values.gather(1, self.sources.gather(-1, strongest).squeeze(-1))


class Pooler(nn.Module, ABC):
    """Shortens a sequence of representations."""

    #: the kind of upsampling that belongs to the pooling as it is published; None where none does
    upsampling: ClassVar[str | None] = None

    @abstractmethod
    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        """Pool ``sequence`` of L positions to at most K vectors a document."""

    def kept(self, length: int) -> int | None:
        """Return how many vectors a document of ``length`` positions is pooled to, padding after them.

        None where that is not known from its length: the encoder then asks masks, and waits for a GPU.
        """
        return None


POOLING: Registry[Pooler] = Registry("pooling")

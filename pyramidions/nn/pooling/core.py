"""The role of a pooler, what it reads and hands on, and the registry of kinds."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyramidions.nn.context import Context
from pyramidions.nn.functional.topk import TopK
from pyramidions.nn.registry import Registry


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


class Pooler(nn.Module, ABC):
    """Shortens a sequence of representations."""

    @abstractmethod
    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Pooled:
        """Pool ``x`` (B, L, D) with ``padding_mask`` (B, L) to at most K vectors a document."""

    def kept(self, length: int) -> int | None:
        """Return how many vectors a document of ``length`` positions is pooled to, padding after them.

        None where that is not known from its length: the encoder then asks masks, and waits for a GPU.
        """
        return None


class Upsampler(nn.Module, ABC):
    """Brings a pooled sequence back to the length that it had."""

    @abstractmethod
    def forward(self, x: Tensor, unpooled: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, L, D) and its mask, given ``x`` (B, K, D) and what there was before pooling."""


class _Attached(torch.autograd.Function):
    """Hands on ``x`` as it is, and gives ``scores`` a gradient of zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scores: Tensor) -> Tensor:
        ctx.scores = scores.shape, {"dtype": scores.dtype, "device": scores.device}
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        shape, kind = ctx.scores
        return grad, torch.zeros(shape, **kind)


def pooled_from(top: TopK, scores: Tensor) -> Pooled:
    """Hand on what a top-k operator selected by ``scores`` (B, L).

    The scorer stays in the graph where the selection does not depend on it (batches too short to be pooled, hard
    selection): data-parallel training waits for the gradient of every parameter.
    """
    # What passed through unchanged is made a tensor of its own, as every selection is.
    x = top.x.clone() if top.x.size(1) == scores.size(1) else top.x
    return Pooled(_Attached.apply(x, scores), top.padding_mask, top.sources, top.weights)


POOLING: Registry[Pooler] = Registry("pooling")

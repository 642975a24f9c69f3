"""The role of a stack, and the registry of kinds."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.layer import Layer
from pyramidions.nn.sublayer import LayerContext, State


class Stack(nn.Module, ABC):
    """Composes layers, and owns every pass over several of them."""

    #: vectors that a position has between layers; several become one at the end of a pass, so that it matters which
    #: layers a pass runs
    streams: ClassVar[int] = 1
    #: the kind that computes the same, and activations again; None if there is none
    recomputed: ClassVar[str | None] = None

    @abstractmethod
    def forward(self, layers: Sequence[Layer], x: Tensor, context: LayerContext) -> Tensor:
        """Run ``layers`` over whole sequences: (B, L, D) -> (B, L, D).

        The watchers of ``context`` receive what their functions read.
        """

    def step(
        self, layers: Sequence[Layer], x: Tensor, context: LayerContext, states: Sequence[Sequence[State | None]]
    ) -> Tensor:
        """Run ``layers`` on what follows the ``states``, one list per layer: (B, WT, D) -> (B, WT, D)."""
        for layer, held in zip(layers, states, strict=True):
            x = layer.step(x, context, held)
        return x


STACK: Registry[Stack] = Registry("stack")

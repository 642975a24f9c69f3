"""The role of a stack, the registry of kinds, and the stacks of one stream."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.replay import forward_and_recomputation
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


@STACK.register("plain")
class PlainStack(Stack):
    """Every layer reads the output of the one before; all activations are kept for the backward pass."""

    recomputed = "recomputing"

    def forward(self, layers: Sequence[Layer], x: Tensor, context: LayerContext) -> Tensor:
        for layer in layers:
            x = layer(x, context)
        return x


@STACK.register("recomputing")
class RecomputingStack(Stack):
    """Keeps only the input of each layer, and recomputes the rest in the backward pass (Chen et al. 2016).

    What a layer decides, `replayed`, is kept as well.
    """

    recomputed = "recomputing"

    def forward(self, layers: Sequence[Layer], x: Tensor, context: LayerContext) -> Tensor:
        for layer in layers:
            x = checkpoint(layer, x, context, use_reentrant=False, context_fn=forward_and_recomputation)
        return x

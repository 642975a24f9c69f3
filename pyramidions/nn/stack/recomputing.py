"""The stack that keeps only the inputs of layers."""

from collections.abc import Sequence

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pyramidions.nn.functional.replay import forward_and_recomputation
from pyramidions.nn.layer import Layer
from pyramidions.nn.stack.core import STACK, Stack
from pyramidions.nn.sublayer import LayerContext


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

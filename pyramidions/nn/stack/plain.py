"""The plain stack."""

from collections.abc import Sequence

from torch import Tensor

from pyramidions.nn.layer import Layer
from pyramidions.nn.stack.core import STACK, Stack
from pyramidions.nn.sublayer import LayerContext


@STACK.register("plain")
class PlainStack(Stack):
    """Every layer reads the output of the one before; all activations are kept for the backward pass."""

    recomputed = "recomputing"

    def forward(self, layers: Sequence[Layer], x: Tensor, context: LayerContext) -> Tensor:
        for layer in layers:
            x = layer(x, context)
        return x

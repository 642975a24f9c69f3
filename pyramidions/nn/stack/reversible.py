"""The reversible stack."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.stack.reversible_pass import learns, reversible_pass
from pyramidions.nn.stack.stack import STACK, Stack
from pyramidions.nn.sublayer import LayerContext, State


@STACK.register("reversible")
class ReversibleStack(Stack):
    """Keeps its last vectors alone, and computes all others back from them (Gomez et al. 2017; Kitaev et al. 2020).

    Two streams begin with the input. A sublayer adds what it computes of the second to the first, x1 + f(x2); then the
    streams change places. The output is their mean. In the backward pass x1 is that sum less f(x2), so that memory does
    not grow with the number of layers.

    Args:
        opened: the input is both streams side by side, (B, L, 2D).
        merges: the output is the mean of both; without, both side by side, (B, L, 2D).
    """

    streams = 2

    def __init__(self, normalize_before: bool = True, opened: bool = False, merges: bool = True) -> None:
        super().__init__()
        self.opened = opened
        self.merges = merges
        if not normalize_before:
            raise ValueError("`stack` reversible needs `normalize_before` to be true, but it is false.")

    def forward(self, layers: Sequence[Layer], x: Tensor, context: LayerContext) -> Tensor:
        sublayers = [cast(Sublayer, sublayer) for layer in layers for sublayer in layer.sublayers.values()]
        weights = [weight for sublayer in sublayers for weight in sublayer.parameters()]
        if torch.is_grad_enabled() and any(map(learns, (x, *tree_leaves(context), *weights))):
            return reversible_pass(sublayers, context, *self._begun(x), self.merges)
        first, second = self._begun(x)
        for sublayer in sublayers:
            first, second = second, first + sublayer.branch(second, context)
        return self._ended(first, second)

    def step(
        self, layers: Sequence[Layer], x: Tensor, context: LayerContext, states: Sequence[Sequence[State | None]]
    ) -> Tensor:
        first, second = self._begun(x)
        for layer, held in zip(layers, states, strict=True):
            for sublayer, state in zip(layer.sublayers.values(), held, strict=True):
                first, second = second, first + cast(Sublayer, sublayer).step_branch(second, context, state)
        return self._ended(first, second)

    def _begun(self, x: Tensor) -> tuple[Tensor, Tensor]:
        # (B, L, 2D) -> (B, L, D) twice
        first, second = x.chunk(2, dim=-1) if self.opened else (x, x)
        return first, second

    def _ended(self, first: Tensor, second: Tensor) -> Tensor:
        return (first + second) / 2 if self.merges else torch.cat([first, second], dim=-1)

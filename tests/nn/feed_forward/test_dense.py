"""The activations of the dense feed-forward part."""

import math
from collections.abc import Callable

import pytest
import torch
from small_parts import vectors
from tables import for_each
from torch import Tensor

from pyramidions.nn.feed_forward import DenseFeedForward
from pyramidions.nn.sublayer import LayerContext


def of_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def of_erf(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


@for_each(("activation", "expected"), [("gelu_tanh", of_tanh), ("gelu", of_erf), ("relu", torch.relu)])
def test_each_activation_is_its_formula(activation: str, expected: Callable[[Tensor], Tensor]) -> None:
    part = DenseFeedForward(2, 4, activation)
    x = torch.linspace(-3, 3, 8).view(1, 4, 2)
    torch.testing.assert_close(part(x, LayerContext()), part.fc2(expected(part.fc1(x))), rtol=0, atol=1e-6)
    assert not torch.equal(of_tanh(x), of_erf(x))


@pytest.mark.parametrize("chunk_size", [0, 3])
def test_training_without_dropout_computes_what_evaluation_does(chunk_size: int) -> None:
    part, x = DenseFeedForward(2, 4, chunk_size=chunk_size), vectors(2, 7, 2)
    assert part.train()(x, LayerContext()).equal(part.eval()(x, LayerContext()))

"""The activations of the dense feed-forward part, and its chunks: the same numbers, less memory."""

import math
from collections.abc import Callable

import pytest
import torch
from live_memory import most_bytes
from small_parts import vectors
from torch import Tensor

from pyramidions.nn.feed_forward import DenseFeedForward
from pyramidions.nn.sublayer import LayerContext

EMBED_DIM, WIDTH = 8, 512


def make(chunk_size: int, activation: str = "relu", dropout: float = 0.0) -> DenseFeedForward:
    torch.manual_seed(0)
    return DenseFeedForward(EMBED_DIM, WIDTH, activation, dropout, chunk_size).train()


def step(part: Callable[[Tensor], Tensor], weights: list[Tensor], x: Tensor) -> list[Tensor]:
    """Return output and gradients, the random numbers being the same each time."""
    x = x.detach().requires_grad_()
    torch.manual_seed(3)
    out = part(x)
    torch.manual_seed(4)  # what the backward pass draws anew would not be what was drawn
    return [out, *torch.autograd.grad(out.square().sum(), [x, *weights])]


@pytest.mark.parametrize(("activation", "length"), [("relu", 1), ("gelu", 9), ("gelu_tanh", 8)])
def test_chunks_change_neither_output_nor_gradients(activation: str, length: int) -> None:
    x = vectors(2, length, EMBED_DIM).double()
    found = []
    for chunk_size in (0, 4, 100):
        part = make(chunk_size, activation).double()
        found.append(step(lambda x, part=part: part(x, LayerContext()), list(part.parameters()), x))
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(found[2], found[0], rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_backward_pass_drops_what_was_dropped(activation: str) -> None:
    part, x = make(3, activation, dropout=0.5).double(), vectors(2, 5, EMBED_DIM).double()
    assert part.chunk_size == 3

    def kept(x: Tensor) -> Tensor:
        """Compute chunk by chunk, and nothing twice."""
        chunks = x.flatten(0, 1).split(3)
        dropped = [part.fc2(part.activate(part.fc1(chunk), part.activation_dropout)) for chunk in chunks]
        return torch.cat(dropped).view_as(x)

    expected, found = (step(run, list(part.parameters()), x) for run in (kept, lambda x: part(x, LayerContext())))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-10)


def test_the_backward_pass_computes_in_the_precision_of_autocast() -> None:
    x, found = vectors(2, 5, EMBED_DIM), []
    for chunk_size in (0, 10):
        part = make(chunk_size)
        with torch.autocast("cpu", torch.bfloat16):
            out = part(x, LayerContext())
        assert out.dtype == torch.bfloat16
        found.append(torch.autograd.grad(out.float().square().sum(), list(part.parameters())))
    assert all(ours.equal(expected) for ours, expected in zip(*reversed(found), strict=True))


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_peak_of_a_training_step_falls_with_the_number_of_chunks(dropout: float) -> None:
    x = vectors(1, 1024, EMBED_DIM).requires_grad_()
    # What a step takes whatever the chunks: outputs, gradients of inputs and weights.
    fixed = 6 * x.nbytes + 3 * sum(weight.nbytes for weight in make(0).parameters())

    def peak(chunk_size: int) -> int:
        part = make(chunk_size, dropout=dropout)
        return most_bytes(lambda: part(x, LayerContext()).square().sum().backward())

    one = peak(1024)
    assert one >= 2 * 1024 * WIDTH * 4
    for chunks in (2, 16):
        assert peak(1024 // chunks) <= one / chunks + fixed


def of_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def of_erf(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


@pytest.mark.parametrize(("activation", "expected"), [("gelu_tanh", of_tanh), ("gelu", of_erf), ("relu", torch.relu)])
def test_each_activation_is_its_formula(activation: str, expected: Callable[[Tensor], Tensor]) -> None:
    part = DenseFeedForward(2, 4, activation)
    x = torch.linspace(-3, 3, 8).view(1, 4, 2)
    torch.testing.assert_close(part(x, LayerContext()), part.fc2(expected(part.fc1(x))), rtol=0, atol=1e-6)
    assert part.train()(x, LayerContext()).equal(part.eval()(x, LayerContext()))

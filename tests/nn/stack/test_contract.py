"""What every stack promises; a new kind is held to it by being registered."""

from collections.abc import Callable

import pytest
import torch
from small_parts import DECODING, DIM, SETTING, ends_after, layer, vectors
from torch import Tensor

from pyramidions.nn.layer import Layer
from pyramidions.nn.stack import STACK, Stack
from pyramidions.nn.sublayer import LayerContext, Memory

kinds = pytest.mark.parametrize("kind", STACK.names)
#: pre-norm, and post-norm of the kinds that have one stream
norms = pytest.mark.parametrize(
    ("kind", "normalize_before"),
    [(kind, True) for kind in STACK.names] + [(kind, False) for kind in STACK.names if STACK[kind].streams == 1],
)


def make(kind: str) -> Stack:
    return STACK.build(kind, {}, **SETTING)


def layers(*names: str, count: int = 3, **options: float) -> list[Layer]:
    torch.manual_seed(0)
    return [layer(*names, **options) for _ in range(count)]


def context() -> LayerContext:
    """Return what layers of a decoder read beside their input: a memory that ends with padding."""
    return LayerContext(None, (Memory(vectors(2, 4, DIM, seed=1), ends_after(4, 2)),))


def one_after_the_other(run: list[Layer], x: Tensor, context: LayerContext) -> Tensor:
    for one in run:
        x = one(x, context)
    return x


def in_two_streams(run: list[Layer], x: Tensor, context: LayerContext) -> Tensor:
    return torch.stack(streams(run, x, context)).mean(dim=0)


def streams(run: list[Layer], x: Tensor, context: LayerContext) -> tuple[Tensor, Tensor]:
    first = second = x
    for one in run:
        for sublayer in one.sublayers.values():
            first, second = second, first + sublayer.branch(second, context)
    return first, second


def composed(kind: str) -> Callable[[list[Layer], Tensor, LayerContext], Tensor]:
    """Return the formula of a kind, which keeps everything."""
    return {1: one_after_the_other, 2: in_two_streams}[STACK[kind].streams]


@norms
def test_layers_are_composed_by_the_formula(kind: str, normalize_before: bool) -> None:
    run, x, padding = layers(normalize_before=normalize_before), vectors(2, 5, DIM), LayerContext(ends_after(5, 3))
    torch.testing.assert_close(make(kind)(run, x, padding), composed(kind)(run, x, padding))


@kinds
@pytest.mark.parametrize(("dropout", "recurs"), [(0.0, False), (0.3, True)])
def test_gradients_are_those_of_the_formula(kind: str, dropout: float, recurs: bool) -> None:
    read = context()
    run = layers(*DECODING, dropout=dropout, recurs=recurs, normalize_before=STACK[kind].streams > 1)
    weights = [weight for one in run for weight in one.parameters()]
    found: list[tuple[Tensor, ...]] = []
    for stack in (composed(kind), make(kind)):
        x, memory = vectors(2, 5, DIM).requires_grad_(), vectors(2, 4, DIM, seed=1).requires_grad_()
        torch.manual_seed(7)
        out = stack(run, x, read._replace(memories=(read.memories[0]._replace(x=memory),)))
        found.append((out, *torch.autograd.grad(out.square().sum(), [x, memory, *weights])))
    for expected, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
    assert found[1][1].any() and found[1][2].any()


@norms
def test_a_watcher_is_shown_what_its_function_reads_without_gradients(kind: str, normalize_before: bool) -> None:
    run, x = layers(normalize_before=normalize_before), vectors(2, 5, DIM).requires_grad_()
    seen: list[Tensor] = []
    watched = run[1].sublayers["self_attention"]
    out = make(kind)(run, x, LayerContext(watchers={watched.function: seen.append}))
    if STACK[kind].streams > 1:
        # What such a stack computes again in the backward pass is not shown again.
        out.sum().backward()
    (read,) = seen
    before = run[0](x, LayerContext()) if STACK[kind].streams == 1 else streams(run[:1], x, LayerContext())[1]
    torch.testing.assert_close(read, watched.norm(before) if normalize_before else before)
    assert not read.requires_grad

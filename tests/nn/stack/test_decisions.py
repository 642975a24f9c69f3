"""What is computed again repeats the decisions of the forward pass."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
import torch
from small_parts import DIM, WIDTH, ends_after, function, vectors
from torch import Tensor

from pyramidions.nn.feed_forward import DenseFeedForward, ExpertsFeedForward, SparseFeedForward
from pyramidions.nn.functional import choices
from pyramidions.nn.functional.replay import Decisions, replayed
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.stack import STACK, ReversibleStack
from pyramidions.nn.sublayer import LayerContext, SublayerFunction

LSH = {"kind": "lsh", "bucket_size": 4, "num_hashes": 2, "local_heads": 0}


class Fickle(SublayerFunction):
    """Multiplies by another number each time that it decides."""

    def __init__(self, numbers: Iterator[int]) -> None:
        super().__init__()
        self._numbers = numbers

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return x * replayed(lambda: torch.tensor(next(self._numbers)), 256)


def layer_of(*functions: SublayerFunction, dropout: float = 0.0) -> Layer:
    made = {str(n): Sublayer(one, DIM, dropout, normalize_before=True) for n, one in enumerate(functions)}
    return Layer(made).double()


def kept(layers: list[Layer], x: Tensor, context: LayerContext) -> Tensor:
    """Compute the two streams of the reversible stack, of which autograd keeps what it wants."""
    first = second = x
    for one in layers:
        for sublayer in one.sublayers.values():
            first, second = second, first + sublayer.branch(second, context)
    return (first + second) / 2


def gradients(run: Callable[..., Tensor], layers: list[Layer], x: Tensor, context: LayerContext) -> list[Tensor]:
    """Return the output, the random state after both passes, and all gradients."""
    x = x.detach().requires_grad_()
    torch.manual_seed(7)
    out = run(layers, x, context)
    of = [x, *(weight for one in layers for weight in one.parameters())]
    found = torch.autograd.grad(out.square().sum(), of)
    return [out, torch.get_rng_state(), *found]


@pytest.mark.parametrize("kind", STACK.names)
def test_a_part_that_decides_anew_each_time_has_the_gradients_of_its_forward_pass(kind: str) -> None:
    found = []
    for run in (STACK.build(kind, {}), STACK.build("plain", {}) if STACK[kind].streams == 1 else kept):
        numbers = count(1)
        found.append(
            gradients(
                run, [layer_of(Fickle(numbers), Fickle(numbers))] * 2, vectors(2, 5, DIM).double(), LayerContext()
            )
        )
        assert next(numbers) == 5
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [kind for kind in STACK.names if kind != "plain"])
def test_the_backward_pass_repeats_decisions_as_often_as_it_is_repeated(kind: str) -> None:
    numbers, x = count(1), vectors(2, 5, DIM).double().requires_grad_()
    loss = STACK.build(kind, {})([layer_of(Fickle(numbers))] * 3, x, LayerContext()).square().sum()
    first, second = (torch.autograd.grad(loss, x, retain_graph=True) for _ in range(2))
    assert first[0].equal(second[0]) and next(numbers) == 4


def choosing(**options: Any) -> list[SublayerFunction]:
    return [
        SparseFeedForward(DIM, WIDTH, 2, quantized=1.0, **options),
        ExpertsFeedForward(DIM, WIDTH, 4, quantized=1.0, **options),
    ]


def hashing_layers(dropout: float) -> list[Layer]:
    torch.manual_seed(0)
    made = []
    for fed in (*choosing(activation_dropout=dropout), SparseFeedForward(DIM, WIDTH, 4, activation_dropout=dropout)):
        made.append(layer_of(function("self_attention", dropout=dropout, **LSH), fed, dropout=dropout))
    return made


@pytest.mark.parametrize("kind", [kind for kind in STACK.names if kind != "plain"])
def test_gradients_with_dropout_hashing_and_choices_are_those_of_autograd(kind: str) -> None:
    dropout = 0.3
    layers, x, context = hashing_layers(dropout), vectors(2, 23, DIM).double(), LayerContext(ends_after(23, 9))
    plain = kept if STACK[kind].streams > 1 else STACK.build("plain", {})
    expected, found = (gradients(run, layers, x, context) for run in (plain, STACK.build(kind, {})))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert all(of.any() for of in found[2:])


def test_a_choice_that_rounding_would_change_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    chosen = SparseFeedForward(DIM, WIDTH, 2, temperature=0.0, quantized=1.0)
    # What is subtracted from a stream to compute it back is so large that the stream loses seven digits or more.
    loud = DenseFeedForward(DIM, WIDTH)
    with torch.no_grad():
        loud.fc2.weight.mul_(1e10)
    layers, x = [layer_of(DenseFeedForward(DIM, WIDTH), chosen, loud)], vectors(1, 1, DIM).double()
    controller = chosen.chosen.controller
    logits: list[Tensor] = []
    hook = controller.register_forward_hook(lambda module, given, out: logits.append(out.detach()))
    kept(layers, x, LayerContext())
    hook.remove()
    # (1, F) -> (B, 2); now the second unit of each block leads by 1e-7
    first, second = logits[0].view(-1, 2).unbind(-1)
    with torch.no_grad():
        controller.bias.view(-1, 2)[:, 1] += first - second + 1e-7

    def differs(run: Callable[..., Tensor]) -> float:
        expected, found = (gradients(each, layers, x, LayerContext())[2:] for each in (kept, run))
        pairs = zip(found, expected, strict=True)
        return max(float((ours - theirs).abs().max() / theirs.abs().max()) for ours, theirs in pairs)

    assert differs(ReversibleStack()) < 1e-4
    monkeypatch.setattr(choices, "replayed", lambda make, below: make())
    assert differs(ReversibleStack()) > 0.5


def test_a_choice_of_at_most_256_is_kept_in_a_byte_and_a_weighting_call_keeps_none() -> None:
    x, sizes = vectors(3, 5, DIM), []
    for quantized in (1.0, 0.0):
        made, part = Decisions(), SparseFeedForward(DIM, WIDTH, 4, quantized=quantized).train()
        with made.recording():
            part(x, LayerContext())
        sizes.append(made.nbytes)
    assert sizes == [3 * 5 * WIDTH // 4, 0]

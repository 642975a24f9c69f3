"""The reversible stack: gradients beside autograd through streams that are kept, and what it keeps itself."""

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest
import torch
from live_memory import most_bytes
from small_parts import DIM, WIDTH, ends_after, layer, vectors
from torch import Tensor

from pyramidions.nn import sequence
from pyramidions.nn.feed_forward import DenseFeedForward, SparseFeedForward
from pyramidions.nn.functional import choices
from pyramidions.nn.functional.replay import replayed
from pyramidions.nn.functional.topk import hard_topk, successive_halving_topk
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.pooling import MeanPooler, Pooler, TopKPooler
from pyramidions.nn.scorer import AttentionScorer, LinearScorer, Scorer
from pyramidions.nn.stack import STACK, ReversibleStack, Stack
from pyramidions.nn.stage import Stage
from pyramidions.nn.sublayer import LayerContext, Memory, SublayerFunction

LSH = {"kind": "lsh", "bucket_size": 4, "num_hashes": 2, "local_heads": 0}
BLOCKS = {"kind": "blockwise", "block_size": 4}
LENGTHS = (23, 9)


class Kept(ReversibleStack):
    """The same streams, of which autograd keeps what it wants."""

    def forward(self, layers: Sequence[Layer], x: Tensor, context: LayerContext) -> Tensor:
        first = second = x
        for one in layers:
            for sublayer in one.sublayers.values():
                first, second = second, first + sublayer.branch(second, context)
        return (first + second) / 2


def layers(*names: str, count: int = 3, **options: Any) -> list[Layer]:
    torch.manual_seed(0)
    return [layer(*names, normalize_before=True, **options) for _ in range(count)]


def documents(x: Tensor) -> sequence.Sequence:
    return sequence.Sequence(x, ends_after(*LENGTHS), torch.arange(23).expand(2, -1), list(LENGTHS))


def gradients(run: Callable[[], Tensor], of: list[Tensor]) -> list[Tensor]:
    """Return output and gradients; the random numbers are the same each time, and the backward pass takes none."""
    torch.manual_seed(7)
    out = run()
    before = torch.get_rng_state()
    torch.rand(5)
    found = torch.autograd.grad(out.square().sum(), of)
    torch.set_rng_state(before)
    return [out, before, *found]


def weights_of(run: list[Layer]) -> list[Tensor]:
    return [weight for one in run for weight in one.parameters()]


def topk(scorer: Scorer) -> Pooler:
    return TopKPooler(8, scorer, successive_halving_topk, hard_topk)


@pytest.mark.parametrize(
    ("pooler", "options", "dropout"),
    [
        (None, [LSH, LSH, LSH], 0.0),
        (None, [LSH, BLOCKS, {}], 0.3),
        (None, [{**options, "recurs": True} for options in (BLOCKS, LSH, {})], 0.3),
        (topk(LinearScorer(DIM)), [LSH, LSH, LSH], 0.3),
        (topk(AttentionScorer()), [LSH, BLOCKS, {}], 0.3),
        (MeanPooler(3), [BLOCKS, BLOCKS, LSH], 0.3),
    ],
    ids=["hashing", "blocks", "recurrences", "linear", "attention", "mean"],
)
def test_gradients_through_hashing_blocks_recurrences_and_poolers_are_exact(
    pooler: Pooler | None, options: list[dict[str, Any]], dropout: float
) -> None:
    run = [layers(count=1, dropout=dropout, **one)[0].double() for one in options]
    after = [one.double() for one in layers(dropout=dropout)]
    x = vectors(2, 23, DIM).double().requires_grad_()
    of = [x, *weights_of([*run, *after]), *([] if pooler is None else pooler.double().parameters())]

    def through(stack: Stack) -> Tensor:
        pooled = Stage(run, pooler)(documents(x), stack).sequence
        return Stage(after)(pooled, stack).sequence.x

    expected, found = (gradients(lambda stack=stack: through(stack), of) for stack in (Kept(), ReversibleStack()))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_gradients_of_a_decoder_reach_all_memories() -> None:
    names = ("self_attention", "cross_attention", "cross_attention_2", "cross_attention_3", "feed_forward")
    run = layers(*names, dropout=0.3, is_causal=True)
    run = [one.double() for one in run]
    x, first, second = (vectors(2, length, DIM, seed=length).double().requires_grad_() for length in (5, 4, 7))
    # One of them masked, and one read twice.
    context = LayerContext(None, (Memory(first, ends_after(4, 2)), Memory(second), Memory(first)))
    of = [x, first, second, *weights_of(run)]
    expected, found = (gradients(lambda s=s: s(run, x, context), of) for s in (Kept(), ReversibleStack()))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert found[3].any() and found[4].any()


def test_streams_that_a_stack_hands_on_go_on_in_the_next_as_if_both_were_one() -> None:
    run = [one.double() for one in layers(count=4, dropout=0.3)]
    x = vectors(2, 23, DIM).double().requires_grad_()

    def through(s: Callable[..., Stack]) -> Tensor:
        handed = s(merges=False)(run[:2], x, LayerContext())
        assert handed.shape == (2, 23, 2 * DIM)
        return s(opened=True)(run[2:], handed, LayerContext())

    expected = gradients(lambda: Kept()(run, x, LayerContext()), [x, *weights_of(run)])
    found = gradients(lambda: through(ReversibleStack), [x, *weights_of(run)])
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        torch.manual_seed(7)
        torch.testing.assert_close(through(ReversibleStack), expected[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_computed_back_is_what_there_was_to_the_bit(dtype: torch.dtype) -> None:
    run = [one.to(dtype) for one in layers(count=12, dropout=0.3, **LSH)]
    read: list[Tensor] = []
    for one in run:
        for sublayer in one.sublayers.values():
            sublayer.norm.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0].detach().clone()))
    x = (vectors(2, 23, DIM) * 100).to(dtype).requires_grad_()
    ReversibleStack()(run, x, LayerContext(ends_after(*LENGTHS))).float().square().sum().backward()
    assert len(read) == 48 and all(torch.equal(*both) for both in zip(read[:24], reversed(read[24:]), strict=True))


def test_precision_is_that_of_autocast_in_the_backward_pass_too() -> None:
    run, x, found = layers(dropout=0.3), vectors(2, 23, DIM).requires_grad_(), []
    for stack in (Kept(), ReversibleStack()):
        torch.manual_seed(7)
        with torch.autocast("cpu", torch.bfloat16):
            out = stack(run, x, LayerContext())
        assert out.dtype == torch.float32
        found.append(torch.autograd.grad(out.square().sum(), [x, *weights_of(run)]))
    torch.testing.assert_close(*found, rtol=0.02, atol=0.1)


def test_the_streams_are_forgotten_when_the_backward_pass_ends() -> None:
    for x_learns in (False, True):
        before, run = alive_in_float64(), layers()
        out = ReversibleStack()(run, vectors(2, 5, DIM).requires_grad_(x_learns), LayerContext())
        assert alive_in_float64() > before
        out.sum().backward()
        # The graph is still there, as long as its end is.
        assert out.grad_fn is not None and alive_in_float64() == before
        # Weights have gradients where the input needs none.
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in weights_of(run))
        del out


def alive_in_float64() -> int:
    """Return how many tensors in float64 Python holds."""
    return sum(type(each) is Tensor and each.dtype == torch.float64 for each in gc.get_objects())


def test_a_further_layer_adds_nothing_to_the_peak_where_gradients_are_added_to_others() -> None:
    def peak(count: int) -> int:
        run, x = layers(count=count), vectors(2, 5, DIM)
        for weight in weights_of(run):
            weight.grad = torch.zeros_like(weight)
        return most_bytes(lambda: ReversibleStack()(run, x, LayerContext()).square().sum().backward())

    assert peak(1) == peak(9)


def test_sublayers_below_the_first_that_learns_are_not_computed_again() -> None:
    run, calls = layers(count=3), []
    for weight in weights_of(run[:2]):
        weight.requires_grad_(False)
    for number, one in enumerate(run):
        one.sublayers["feed_forward"].norm.register_forward_hook(lambda *_, number=number: calls.append(number))
    ReversibleStack()(run, vectors(2, 5, DIM), LayerContext()).square().sum().backward()
    assert calls == [0, 1, 2, 2] and weights_of(run[2:])[0].grad is not None


def test_a_hook_on_a_weight_is_called_once_with_the_whole_gradient() -> None:
    one = layers(count=1)[0]
    weight = one.sublayers["feed_forward"].function.fc1.weight
    seen: list[Tensor] = []
    weight.register_hook(seen.append)
    # The same layer twice, as models that share layers have it.
    ReversibleStack()([one, one], vectors(2, 5, DIM), LayerContext()).square().sum().backward()
    assert len(seen) == 1 and seen[0].equal(weight.grad) and weight.grad.any()


def test_a_stage_of_different_blocks_is_one_pass() -> None:
    run = [layers(count=1, **options)[0] for options in (BLOCKS, {}, BLOCKS, {"kind": "blockwise", "block_size": 3})]
    given = documents(vectors(2, 23, DIM))
    with torch.no_grad():
        found = Stage(run)(given, ReversibleStack()).sequence
        for row, length in enumerate(LENGTHS):
            expected = Kept()(run, given.x[row : row + 1, :length], LayerContext())
            torch.testing.assert_close(found.x[row : row + 1, :length], expected, rtol=0, atol=1e-5)


def gradients_of(run: Stack, layers: list[Layer], x: Tensor, context: LayerContext) -> list[Tensor]:
    x = x.detach().requires_grad_()
    return gradients(lambda: run(layers, x, context), [x, *weights_of(layers)])


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


@pytest.mark.parametrize("kind", STACK.names)
def test_a_part_that_decides_anew_each_time_has_the_gradients_of_its_forward_pass(kind: str) -> None:
    found, x = [], vectors(2, 5, DIM).double()
    for run in (STACK.build(kind, {}), STACK.build("plain", {}) if STACK[kind].streams == 1 else Kept()):
        numbers = count(1)
        twice = [layer_of(Fickle(numbers), Fickle(numbers))] * 2
        found.append(gradients_of(run, twice, x, LayerContext()))
        assert next(numbers) == 5
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [kind for kind in STACK.names if kind != "plain"])
def test_the_backward_pass_repeats_decisions_as_often_as_it_is_repeated(kind: str) -> None:
    numbers, x = count(1), vectors(2, 5, DIM).double().requires_grad_()
    loss = STACK.build(kind, {})([layer_of(Fickle(numbers))] * 3, x, LayerContext()).square().sum()
    first, second = (torch.autograd.grad(loss, x, retain_graph=True) for _ in range(2))
    assert first[0].equal(second[0]) and next(numbers) == 4


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
    Kept()(layers, x, LayerContext())
    hook.remove()
    # (1, F) -> (B, 2); now the second unit of each block leads by 1e-7
    first, second = logits[0].view(-1, 2).unbind(-1)
    with torch.no_grad():
        controller.bias.view(-1, 2)[:, 1] += first - second + 1e-7

    def differs(run: Stack) -> float:
        expected, found = (gradients_of(each, layers, x, LayerContext())[2:] for each in (Kept(), run))
        pairs = zip(found, expected, strict=True)
        return max(float((ours - theirs).abs().max() / theirs.abs().max()) for ours, theirs in pairs)

    assert differs(ReversibleStack()) < 1e-4
    monkeypatch.setattr(choices, "replayed", lambda make, below: make())
    assert differs(ReversibleStack()) > 0.5

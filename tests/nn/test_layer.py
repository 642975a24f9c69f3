"""Sublayers and layers by hand, and causal layers that read no memory."""

import pytest
import torch
from small_parts import DECODING, DIM, HEADS, ends_after, function, layer, vectors
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import CrossAttention, SelfAttention
from pyramidions.nn.attention.state import ProjectedMemory, SelfAttentionState
from pyramidions.nn.decoder.cache import DecoderCache
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.stack import STACK
from pyramidions.nn.sublayer import LayerContext, State, SublayerFunction

norms = for_each("normalize_before", [False, True])


class Scaled(SublayerFunction):
    """Multiplies; a step adds 1 so that one can tell it from a pass."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return self.factor * x

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        return self.factor * x + 1


# Of mean 2 and variance 1; normalised it is (-1, 1), but for the norm's epsilon of 1e-5.
X = [[[1.0, 3.0]]]


def scaled(factor: float, normalize_before: bool, dropout: float = 0.0) -> Sublayer:
    return Sublayer(Scaled(factor), 2, dropout, normalize_before)


@for_each(
    ("normalize_before", "step", "expected"),
    [
        # norm(x + 3 x)
        (False, False, [-1.0, 1.0]),
        # x + 3 norm(x)
        (True, False, [-2.0, 6.0]),
        # norm(x + 3 x + 1)
        (False, True, [-1.0, 1.0]),
        # x + 3 norm(x) + 1
        (True, True, [-1.0, 7.0]),
    ],
)
def test_a_sublayer_normalises_the_sum_or_what_its_function_reads(
    normalize_before: bool, step: bool, expected: list[float]
) -> None:
    sublayer, x = scaled(3.0, normalize_before), torch.tensor(X)
    out = sublayer.step(x, LayerContext(), None) if step else sublayer(x, LayerContext())
    torch.testing.assert_close(out, torch.tensor([[expected]]), rtol=0, atol=1e-4)


@norms
def test_entering_branch_and_leaving_make_up_a_sublayer(normalize_before: bool) -> None:
    sublayer, x = scaled(3.0, normalize_before), vectors(2, 3, 2)
    assert sublayer(x, LayerContext()).equal(sublayer.leaving(x + sublayer.branch(x, LayerContext())))
    assert sublayer.branch(x, LayerContext()).equal(3 * sublayer.entering(x))


def test_dropout_drops_of_the_branch_alone_and_in_training_only() -> None:
    sublayer, x = scaled(3.0, normalize_before=True, dropout=0.5), vectors(2, 50, 2)
    dropped = sublayer(x, LayerContext())
    kept = dropped != x
    assert 0.3 < kept.float().mean() < 0.7
    torch.testing.assert_close(dropped[kept], (x + 2 * 3 * sublayer.norm(x))[kept])
    torch.testing.assert_close(sublayer.eval()(x, LayerContext()), x + 3 * sublayer.norm(x))


def test_sublayers_run_in_their_order() -> None:
    first, second = scaled(1.0, normalize_before=True), scaled(5.0, normalize_before=True)
    x, context = vectors(1, 3, 2), LayerContext()
    expected = second(first(x, context), context)
    assert Layer({"b": first, "a": second})(x, context).equal(expected)
    assert not Layer({"a": second, "b": first})(x, context).allclose(expected)
    both = Layer({"b": first, "a": second})
    assert both.step(x, context, [None, None]).equal(second.step(first.step(x, context, None), context, None))


def test_a_layer_finds_its_functions_by_what_they_are() -> None:
    made = layer(*DECODING)
    for kind, name in zip((SelfAttention, CrossAttention, FeedForward), DECODING, strict=True):
        assert made.function(kind) is made.sublayers[name].function
    assert layer("self_attention", "feed_forward").function(CrossAttention) is None


def test_a_layer_has_a_state_for_each_sublayer_and_makes_it_anew() -> None:
    made = layer(*DECODING)
    first, second = made.new_states(), made.new_states()
    assert [type(state) for state in first] == [SelfAttentionState, ProjectedMemory, type(None)]
    assert first[0] is not second[0] and first[1] is not second[1]


projected = pytest.mark.parametrize("projections", PROJECTIONS.names)


def causal(normalize_before: bool, projections: str, count: int = 3) -> list[Layer]:
    torch.manual_seed(0)
    return [layer(is_causal=True, normalize_before=normalize_before, projections=projections) for _ in range(count)]


@norms
@projected
@for_each("stack", STACK.names)
@for_each("steps", [(1, 1, 1, 1), (2, 2), (1, 3)])
@torch.no_grad()
def test_causal_layers_without_a_memory_write_by_steps_what_a_pass_writes(
    normalize_before: bool, projections: str, stack: str, steps: tuple[int, ...]
) -> None:
    run, composed, x = causal(normalize_before, projections), STACK.build(stack, {}), vectors(6, 4, DIM)
    whole = composed(run, x, LayerContext())
    # Two documents of three hypotheses each.
    cache, found = DecoderCache([one.new_states() for one in run]), []
    for new in x.split(steps, dim=1):
        hidden = cache.advance(2, 3, new.size(1), x.device)
        step = composed.step(run, new.reshape(2, -1, DIM), LayerContext(hidden, hypotheses=3), cache.states)
        found.append(step.view_as(new))
    torch.testing.assert_close(torch.cat(found, dim=1), whole)


@norms
@projected
@torch.no_grad()
def test_causal_layers_without_a_memory_see_backwards_only(normalize_before: bool, projections: str) -> None:
    run, composed, x = causal(normalize_before, projections), STACK.build("plain", {}), vectors(2, 5, DIM)
    before = composed(run, x, LayerContext())
    for place in range(5):
        changed = x.clone()
        changed[:, place] = changed[:, place].flip(-1)
        after = composed(run, changed, LayerContext())
        torch.testing.assert_close(after[:, :place], before[:, :place])
        assert not torch.isclose(after[:, place:], before[:, place:], atol=1e-6).all(dim=-1).any()


@torch.no_grad()
def test_a_causal_layer_is_masked_attention_by_hand() -> None:
    torch.manual_seed(0)
    attention, x = function("self_attention", is_causal=True), vectors(2, 5, DIM)
    q, k, v = (
        projection(x).view(2, 5, HEADS, -1).transpose(1, 2)
        for projection in (attention.projections.q_proj, attention.projections.k_proj, attention.projections.v_proj)
    )
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1) | ends_after(5, 3)[:, None, None]
    weights = (q @ k.transpose(2, 3) / (DIM // HEADS) ** 0.5).masked_fill(hidden, -torch.inf).softmax(dim=-1)
    expected = attention.projections.out_proj((weights @ v).transpose(1, 2).reshape(2, 5, DIM))
    torch.testing.assert_close(attention(x, LayerContext(ends_after(5, 3))), expected)


@for_each(
    ("normalize_before", "step", "expected"),
    [
        # norm(x + 3 x + 2 x)
        (False, False, [-1.0, 1.0]),
        # x + 3 norm(x) + 2 x
        (True, False, [0.0, 12.0]),
        # x + 3 norm(x) + 1 + 2 x + 1
        (True, True, [2.0, 14.0]),
    ],
)
def test_what_stands_beside_reads_the_input_before_any_norm_and_is_added(
    normalize_before: bool, step: bool, expected: list[float]
) -> None:
    sublayer, x = Sublayer(Scaled(3.0), 2, 0.0, normalize_before, beside=Scaled(2.0)), torch.tensor(X)
    out = sublayer.step(x, LayerContext(), sublayer.new_state()) if step else sublayer(x, LayerContext())
    torch.testing.assert_close(out, torch.tensor([[expected]]), rtol=0, atol=1e-4)


def test_what_stands_beside_is_not_dropped() -> None:
    sublayer = Sublayer(Scaled(3.0), 2, 0.999999, True, beside=Scaled(2.0)).train()
    assert sublayer.branch(torch.tensor(X), LayerContext()).tolist() == [[[2.0, 6.0]]]


@for_each(("reaches", "expected"), [([8, 1], 8), ([4, 1, 8], 8), ([4, 3], None), ([8, None], None), ([1], 1)])
def test_a_layer_stays_within_blocks_if_all_of_its_sublayers_do(
    reaches: list[int | None], expected: int | None
) -> None:
    sublayers = {}
    for number, reach in enumerate(reaches):
        sublayers[str(number)] = scaled(2.0, False)
        sublayers[str(number)].function.confined_to = reach
    assert Layer(sublayers).confined_to == expected


def test_what_says_nothing_of_its_reach_is_never_cut() -> None:
    assert Layer({"a": scaled(2.0, False)}).confined_to is None

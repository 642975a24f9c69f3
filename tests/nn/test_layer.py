"""Sublayers and layers by hand, and causal layers that read no memory."""

import pytest
import torch
from small_parts import DECODING, layer, vectors
from torch import Tensor

from pyramidions.nn.attention import CrossAttention, SelfAttention
from pyramidions.nn.attention.state import ProjectedMemory
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.sublayer import LayerContext, Pair, State, SublayerFunction


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


@pytest.mark.parametrize(
    ("normalize_before", "beside", "step", "expected"),
    [
        # norm(x + 3 x)
        (False, False, False, [-1.0, 1.0]),
        # x + 3 norm(x)
        (True, False, False, [-2.0, 6.0]),
        # norm(x + 3 x + 1)
        (False, False, True, [-1.0, 1.0]),
        # x + 3 norm(x) + 1
        (True, False, True, [-1.0, 7.0]),
        # What stands beside reads the input before any norm: norm(x + 3 x + 2 x)
        (False, True, False, [-1.0, 1.0]),
        # x + 3 norm(x) + 2 x
        (True, True, False, [0.0, 12.0]),
        # x + 3 norm(x) + 1 + 2 x + 1
        (True, True, True, [2.0, 14.0]),
    ],
)
def test_a_sublayer_normalises_the_sum_or_what_its_function_reads(
    normalize_before: bool, beside: bool, step: bool, expected: list[float]
) -> None:
    sublayer = Sublayer(Scaled(3.0), 2, 0.0, normalize_before, beside=Scaled(2.0) if beside else None)
    x, context = torch.tensor(X), LayerContext()
    out = sublayer.step(x, context, sublayer.new_state()) if step else sublayer(x, context)
    torch.testing.assert_close(out, torch.tensor([[expected]]), rtol=0, atol=1e-4)


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


def test_a_layer_finds_its_functions_by_what_they_are_and_their_states() -> None:
    made = layer(*DECODING)
    for kind, name in zip((SelfAttention, CrossAttention, FeedForward), DECODING, strict=True):
        assert made.function(kind) is made.sublayers[name].function
    assert layer("self_attention", "feed_forward").function(CrossAttention) is None
    # Each sublayer has a state, which is new each time.
    first, second = made.new_states(), made.new_states()
    assert [type(state) for state in first] == [Pair, ProjectedMemory, type(None)]
    assert first[0] is not second[0] and first[1] is not second[1]


def test_what_stands_beside_is_not_dropped() -> None:
    dropping = Sublayer(Scaled(3.0), 2, 0.999999, True, beside=Scaled(2.0)).train()
    assert dropping.branch(torch.tensor(X), LayerContext()).tolist() == [[[2.0, 6.0]]]


def test_a_layer_stays_within_blocks_if_all_of_its_sublayers_do() -> None:
    for reaches, expected in (([8, 1], 8), ([4, 1, 8], 8), ([4, 3], None), ([8, None], None), ([1], 1)):
        sublayers = {}
        for number, reach in enumerate(reaches):
            sublayers[str(number)] = scaled(2.0, False)
            sublayers[str(number)].function.confined_to = reach
        assert Layer(sublayers).confined_to == expected, reaches
    # What says nothing of its reach is never cut.
    assert Layer({"a": scaled(2.0, False)}).confined_to is None

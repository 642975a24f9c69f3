"""Attention in windows beside its formulas, and what windows save."""

import math

import pytest
import torch
from live_memory import most_bytes
from small_parts import ends_after
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.nn.attention import (
    AdaptiveSpanAttention,
    FullAttention,
    RelativeAttention,
    RelativeWindowAttention,
    SelfAttention,
    TransientGlobalAttention,
)
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext, Lineage


def make(window: int, ramp: int, *spans: float, penalty: float = 0.0) -> AdaptiveSpanAttention:
    """Return attention whose heads have these parameters."""
    kind = AdaptiveSpanAttention(len(spans), window, ramp, penalty)
    with torch.no_grad():
        kind.span.copy_(torch.tensor(spans))
    return kind


def test_spans_get_the_gradient_of_the_paper() -> None:
    kind = make(20, 3, -1.0, 0.5, 2.0).double()
    q, k, v = torch.randn(3, 3, 3, 101, 4, dtype=torch.float64)
    padding, away = ends_after(101, 51, 1), (torch.arange(101)[:, None] - torch.arange(101)).abs()
    grad = torch.randn(3, 3, 101, 4, dtype=torch.float64).masked_fill(padding[:, None, :, None], 0.0)
    (found,) = torch.autograd.grad(kind(q, k, v, LayerContext(padding)), kind.span, grad)
    scores = (q @ k.mT / 2).masked_fill(padding[:, None, None], -torch.inf)
    kept = ((kind.side * kind.span.sigmoid()[:, None, None] - away) / kind.ramp + 1).clamp(0, 1) * (away <= kind.side)
    weights = scores.softmax(dim=-1) * kept
    mixed = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-300) @ v
    (expected,) = torch.autograd.grad(mixed, kind.span, grad)
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-6)
    assert found.abs().min() > 0


def test_scores_beyond_the_span_never_outweigh_those_within() -> None:
    # Far away stands a score that leaves nothing to the softmax of the paper in float32.
    kind = make(200, 2, -3.0)
    q, k, v = torch.randn(3, 1, 1, 90, 4)
    k[:, :, 60:] *= 1e4
    mixed = kind(q, k, v)
    assert mixed.isfinite().all()
    torch.testing.assert_close(mixed[:, :, :40], kind(q[:, :, :60], k[:, :, :60], v[:, :, :60])[:, :, :40])


@torch.no_grad()
def test_a_short_span_costs_less_in_evaluation() -> None:
    kind, operations = make(200, 2, -3.0, -2.0), []
    q, k, v = torch.randn(3, 1, 2, 500, 4)
    for training in (True, False):
        with FlopCounterMode(display=False) as counted:
            kind.train(training)(q, k, v)
        operations.append(counted.get_total_flops())
    assert operations[0] > 2 * operations[1] > 0


def test_the_penalty_is_the_mean_span_in_positions() -> None:
    kind = make(100, 16, 0.0, math.log(3), penalty=0.5)
    loss = kind.regulariser()
    assert loss is not None and loss.item() == pytest.approx(0.5 * (25 + 37.5) / 2)
    (grad,) = torch.autograd.grad(loss, kind.span)
    torch.testing.assert_close(grad, 0.25 * 50 * torch.tensor([0.25, 0.1875]))
    assert AdaptiveSpanAttention(2).regulariser() is None


def sublayer(**options: int) -> SelfAttention:
    torch.manual_seed(0)
    given = {"window": 6, "block_size": 4, "buckets": 8, "furthest": 16, **options}
    attention = TransientGlobalAttention(8, 2, **given)
    for biases in (attention.biases, attention.block_biases):
        if biases is not None:
            biases.table.weight.data.normal_()
    return SelfAttention(DenseProjections(8, 2), attention).double()


def naive(function: SelfAttention, x: Tensor) -> Tensor:
    """Attend from one document without padding, (L, D): each key, near or a block, is a row of its own."""
    attention, length = function.attention, len(x)
    assert isinstance(attention, TransientGlobalAttention)
    size, whole = attention.block_size, length // attention.block_size if attention.block_size else 0
    block = (torch.arange(length) // size).clamp(max=whole - 1) if whole else torch.zeros(length)
    rows = [x]
    if whole:
        rows.append(attention.norm(torch.stack([x[block == n].sum(dim=0) for n in range(whole)])))
    q, (k, v) = function.projections.queries(x[None]), function.projections.keys_values(torch.cat(rows)[None])
    distance = torch.arange(length)[None] - torch.arange(length)[:, None]
    near = attention.biases(distance.flatten(), False).unflatten(1, (length, length))
    bias = near.masked_fill(distance.abs() > attention.side, -torch.inf)
    if whole:
        by_block = torch.arange(whole)[None] - block[:, None]
        far = attention.block_biases(by_block.flatten(), False).unflatten(1, (length, whole))
        bias = torch.cat([bias, far], dim=2)
    return function.projections.output(((q @ k.mT / 2 + bias).softmax(-1)) @ v)[0]


@pytest.mark.parametrize("options", [{}, {"block_size": 0}])
def test_each_position_sees_its_window_and_the_sum_of_each_block_of_its_document(options: dict[str, int]) -> None:
    # Of 18 positions the last two count in the fourth block; three positions are less than a block.
    function, lengths = sublayer(**options), (18, 16, 9, 3)
    x, padding = torch.randn(4, 18, 8, dtype=torch.double), ends_after(*lengths)
    weights = [p for p in function.parameters() if p.requires_grad]
    for row, length in enumerate(lengths):
        found, expected = function(x, LayerContext(padding))[row, :length], naive(function, x[row, :length])
        torch.testing.assert_close(found, expected)
        # Each weight has one, also where a text is shorter than a block.
        ours = torch.autograd.grad(found.square().sum(), weights)
        theirs = torch.autograd.grad(expected.square().sum(), weights, allow_unused=True, materialize_grads=True)
        torch.testing.assert_close(ours, theirs)


def test_what_is_received_adds_up_over_more_rows_than_are_held_at_a_time() -> None:
    (q, k), mask = torch.randn(2, 2, 2, 600, 8), ends_after(600, 300)
    weights = (q @ k.mT / 8**0.5).masked_fill(mask[:, None, None], -torch.inf).softmax(-1)
    expected = weights.masked_fill(mask[:, None, :, None], 0.0).sum((1, 2))
    torch.testing.assert_close(FullAttention().received(q, k, LayerContext(mask)), expected)


def relative(**options: int) -> RelativeAttention:
    torch.manual_seed(0)
    kind = RelativeWindowAttention if "window" in options else RelativeAttention
    return kind(12, 3, **options).eval()  # type: ignore[arg-type]


def heads(length: int, batch: int = 2) -> Tensor:
    return torch.randn(3, batch, 3, length, 4)


def test_a_window_computes_no_more_than_it_sees() -> None:
    (q, k, v), operations = heads(400), []
    for kind in (relative(), relative(window=16)):
        with FlopCounterMode(display=False) as counted:
            kind(q, k, v, LayerContext(torch.zeros(2, 400, dtype=torch.bool), is_causal=True))
        operations.append(counted.get_total_flops())
    assert operations[1] < 0.5 * operations[0]


@torch.no_grad()
def test_a_step_of_a_long_prompt_equals_a_pass_and_holds_the_weights_of_a_few_queries() -> None:
    kind, (q, k, v) = relative(window=4, dilation=2, dilated_heads=1).double(), heads(600, batch=1).double()
    blocked = Lineage().extend(1, 1, 600, q.device)
    assert blocked is not None
    bias = as_bias(blocked, q)
    torch.testing.assert_close(kind.step(q, k, v, bias, kind.new_state()), kind(q, k, v, LayerContext(is_causal=True)))
    # Of all heads and all pairs, the weights alone would take 8.6 MB.
    assert most_bytes(lambda: kind.step(q, k, v, bias, kind.new_state())) < 6e6


def test_dropout_of_sinusoids_acts_in_training_only() -> None:
    kind, given = relative(position_dropout=0.5), heads(6)
    assert kind(*given).equal(relative()(*given))
    assert not kind.train()(*given).equal(relative()(*given))

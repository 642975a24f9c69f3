"""What adaptive spans learn and cost."""

import math

import pytest
import torch
from small_parts import ends_after
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.nn.attention import AdaptiveSpanAttention
from pyramidions.nn.sublayer import LayerContext


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

"""Learned spans beside dense attention whose weights are multiplied and normalised again, as the paper writes it."""

import math

import pytest
import torch
from dense_attention import HEADS, assert_is_dense, some_padding
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import AdaptiveSpanAttention, SlidingWindowAttention
from pyramidions.nn.functional import attention, tiles
from pyramidions.nn.sublayer import LayerContext


def make(window: int, ramp: int, *spans: float, dropout: float = 0.0) -> AdaptiveSpanAttention:
    """Return attention whose heads have these parameters."""
    kind = AdaptiveSpanAttention(len(spans), window, ramp, dropout=dropout)
    with torch.no_grad():
        kind.span.copy_(torch.tensor(spans))
    return kind


def kept(length: int, kind: AdaptiveSpanAttention) -> Tensor:
    """Return what a weight is multiplied by: (H, L, L), in the precision of the parameter."""
    distance = (torch.arange(length)[:, None] - torch.arange(length)).abs()
    spans = kind.side * kind.span.sigmoid()
    return ((spans[:, None, None] - distance) / kind.ramp + 1).clamp(0, 1) * (distance <= kind.side)


@settings(deadline=None, max_examples=20)
@given(st.data())
@pytest.mark.parametrize("on_cpu", [True, False])
def test_it_is_dense_attention_with_weights_that_fall_beyond_the_span(on_cpu: bool, data: st.DataObject) -> None:
    spans = data.draw(st.lists(st.floats(-4, 4), min_size=HEADS, max_size=HEADS))
    kind = make(2 * data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20)), *spans).double()
    padding = some_padding(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "computes_in_tiles", lambda x: on_cpu)
        patch.setattr(tiles, "_WEIGHTS", 500)
        patch.setattr(tiles, "_ROWS", 16)  # a few pieces even of short documents
        for mode in (True, False):
            assert_is_dense(kind.train(mode), lambda length: kept(length, kind).log().detach(), padding)


@for_each("length", [1, 2, 63, 65, 300, 601])
def test_odd_lengths_and_a_single_token_with_the_default_options(length: int) -> None:
    kind = AdaptiveSpanAttention(HEADS).double()
    padding = torch.zeros(1, length, dtype=torch.bool)
    assert_is_dense(kind, lambda length: kept(length, kind).log().detach(), padding)


@for_each("length", [1, 7, 101])
def test_spans_get_the_gradient_of_the_paper(length: int) -> None:
    kind = make(20, 3, -1.0, 0.5, 2.0).double()
    q, k, v = torch.randn(3, 2, 3, length, 4, dtype=torch.float64)
    padding = torch.arange(length) >= torch.tensor([[length], [length // 2 + 1]])
    grad = torch.randn(2, 3, length, 4, dtype=torch.float64).masked_fill(padding[:, None, :, None], 0.0)
    (found,) = torch.autograd.grad(kind(q, k, v, LayerContext(padding)), kind.span, grad)
    scores = (q @ k.mT / 2).masked_fill(padding[:, None, None], -torch.inf)
    weights = scores.softmax(dim=-1) * kept(length, kind)
    mixed = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-300) @ v
    (expected,) = torch.autograd.grad(mixed, kind.span, grad)
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-6)
    assert length < 101 or found.abs().min() > 0


@for_each("length", [5, 40, 333])
def test_full_spans_are_a_sliding_window(length: int) -> None:
    kind, window = make(16, 4, 90.0, 90.0), SlidingWindowAttention(16)
    q, k, v = torch.randn(3, 2, 2, length, 4)
    padding = torch.arange(length) >= torch.tensor([[length], [length - 3]])
    real = ~padding[:, None, :, None].expand(-1, 2, -1, 4)
    torch.testing.assert_close(kind(q, k, v, LayerContext(padding))[real], window(q, k, v, LayerContext(padding))[real])
    torch.testing.assert_close(kind.received(q, k, LayerContext(padding)), window.received(q, k, LayerContext(padding)))


def test_scores_beyond_the_span_never_outweigh_those_within() -> None:
    # Far away stands a score that leaves nothing to the softmax of the paper in float32.
    kind = make(200, 2, -3.0)
    q, k, v = torch.randn(3, 1, 1, 90, 4)
    k[:, :, 60:] *= 1e4
    mixed = kind(q, k, v)
    assert mixed.isfinite().all()
    torch.testing.assert_close(mixed[:, :, :40], kind(q[:, :, :60], k[:, :, :60], v[:, :, :60])[:, :, :40])


def test_a_short_span_costs_less_in_evaluation_and_gives_the_same() -> None:
    kind = make(200, 2, -3.0, -2.0)
    q, k, v = torch.randn(3, 1, 2, 150, 4)
    hidden = torch.zeros(1, 150, dtype=torch.bool)
    assert kind.train()._seen(k, hidden)[0].reach == 100 and kind.eval()._seen(k, hidden)[0].reach < 20
    torch.testing.assert_close(kind.train()(q, k, v), kind.eval()(q, k, v))


def test_the_penalty_is_the_mean_span_in_positions() -> None:
    kind = AdaptiveSpanAttention(2, 100, penalty=0.5)
    with torch.no_grad():
        kind.span.copy_(torch.tensor([0.0, math.log(3)]))
    loss = kind.regulariser()
    assert loss is not None and loss.item() == pytest.approx(0.5 * (25 + 37.5) / 2)
    (grad,) = torch.autograd.grad(loss, kind.span)
    torch.testing.assert_close(grad, 0.25 * 50 * torch.tensor([0.25, 0.1875]))
    assert AdaptiveSpanAttention(2).regulariser() is None

"""What every top-k operator promises, and what tells them apart."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.nn.functional.topk import TopK, gumbel_topk, hard_topk, iterative_topk, successive_halving_topk

Operator = Callable[..., TopK]
OPERATORS: dict[str, Operator] = {
    "halving": successive_halving_topk,
    "plain": partial(successive_halving_topk, base=None),
    "unsorted": partial(successive_halving_topk, sort=False),
    "hard": hard_topk,
    "iterative": iterative_topk,
    "gumbel": partial(gumbel_topk, noise=False),
    "gumbel with noise": gumbel_topk,
}
operators = pytest.mark.parametrize("name", OPERATORS)
quiet = pytest.mark.parametrize("name", [name for name in OPERATORS if name != "gumbel with noise"])


def problem(length: int, seed: int = 0, dim: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, length, dim, generator=generator, dtype=torch.double)
    return x, torch.rand(1, length, generator=generator, dtype=torch.double)


@operators
@settings(max_examples=25, deadline=None)
@given(length=st.integers(1, 40), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_each_vector_is_what_its_provenance_says(name: str, length: int, k: int, seed: int) -> None:
    x, scores = problem(length, seed)
    top = OPERATORS[name](x, scores, k)
    assert top.x.shape == (1, min(length, k), 3) and not top.padding_mask.any()
    torch.testing.assert_close(top.weights.sum(-1), torch.ones_like(top.scores))
    members = x[0, top.sources[0]]
    torch.testing.assert_close((top.weights[0, ..., None] * members).sum(1), top.x[0])


@quiet
@settings(max_examples=25, deadline=None)
@given(length=st.integers(1, 30), extra=st.integers(0, 40), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_padding_is_never_mixed_in_nor_selected(name: str, length: int, extra: int, k: int, seed: int) -> None:
    x, scores = problem(length, seed)
    alone = OPERATORS[name](x, scores, k)
    where = torch.randperm(length + extra, generator=torch.Generator().manual_seed(seed))[:length].sort().values
    wide = torch.full((1, length + extra, 3), math.nan, dtype=torch.double)
    wide_scores = torch.full((1, length + extra), 1e30, dtype=torch.double)
    mask = torch.ones(1, length + extra, dtype=torch.bool)
    wide[:, where], wide_scores[:, where], mask[:, where] = x, scores, False
    padded = OPERATORS[name](wide, wide_scores, k, padding_mask=mask)
    real = ~padded.padding_mask
    assert real.sum() == min(length, k)
    torch.testing.assert_close(padded.x[real], alone.x[0])
    torch.testing.assert_close(padded.scores[real], alone.scores[0])


@operators
@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=20), st.integers(1, 8))
def test_scores_of_any_finite_size_give_finite_weights_and_gradients(name: str, values: list[float], k: int) -> None:
    scores = torch.tensor([values], dtype=torch.float32, requires_grad=True)
    x = torch.ones(1, len(values), 2, requires_grad=True)
    top = OPERATORS[name](x, scores, k)
    torch.testing.assert_close(top.x, torch.ones_like(top.x))
    assert top.weights.isfinite().all()
    (top.x * torch.arange(top.x.numel()).view_as(top.x)).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()
    assert scores.grad is None or scores.grad.isfinite().all()


def test_hard_selection_keeps_the_best_in_the_order_of_the_document() -> None:
    x = torch.arange(5.0).view(1, 5, 1)
    top = hard_topk(x, torch.tensor([[0.3, 0.9, 0.1, 0.9, 0.5]]), 3)
    assert top.x.flatten().tolist() == [1.0, 3.0, 4.0]
    assert top.sources.flatten().tolist() == [1, 3, 4]


def test_without_sorting_neighbours_from_both_ends_meet() -> None:
    x = torch.eye(4)[None]
    scores = torch.tensor([[0.1, 0.2, 0.9, 0.3]])
    top = successive_halving_topk(x, scores, 2, sort=False)
    # pairs (0, 3) and (1, 2); the winners 3 and 2 give the order
    w = [1 / (1 + math.exp(20**loser - 20**winner)) for winner, loser in ((0.9, 0.2), (0.3, 0.1))]
    expected = torch.tensor([[[0, 1 - w[0], w[0], 0], [1 - w[1], 0, 0, w[1]]]])
    torch.testing.assert_close(top.x, expected)


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_each_softmax_masks_the_winners_of_those_before(temperature: float) -> None:
    x, scores = problem(9)
    rows, left = [], scores[0].clone()
    for _ in range(4):
        rows.append((left / temperature).softmax(0))
        left[left.argmax()] = -torch.inf
    winners = scores[0].argsort(descending=True)[:4]
    weights = torch.stack(rows)[winners.argsort()]
    top = iterative_topk(x, scores, 4, temperature=temperature)
    torch.testing.assert_close(top.x[0], weights @ x[0])


def test_the_relaxed_subset_lowers_what_it_took() -> None:
    x, scores = problem(6)
    alpha, rows = scores[0].clone(), []
    for _ in range(3):
        a = (alpha / 0.5).softmax(0)
        rows.append(a)
        alpha = alpha + (1 - a).log()
    winners = scores[0].argsort(descending=True)[:3]
    top = gumbel_topk(x, scores, 3, temperature=0.5, noise=False)
    torch.testing.assert_close(top.x[0], torch.stack(rows)[winners.argsort()] @ x[0])


def test_noise_draws_high_scores_more_often_and_a_seed_repeats_it() -> None:
    x, scores = torch.eye(3)[None].expand(2000, 3, 3), torch.tensor([0.0, 1.0, 2.0]).expand(2000, 3)
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append(gumbel_topk(x, scores, 1, temperature=0.01).x.mean(0)[0])
    assert torch.equal(*drawn)
    # Gumbel-max: the winner is distributed as a softmax of the scores
    torch.testing.assert_close(drawn[0], torch.tensor([0.0, 1.0, 2.0]).softmax(0), rtol=0, atol=0.04)

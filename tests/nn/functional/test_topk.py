"""Top-k operators, by hand, beside the tournament round by round, and what all of them promise."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.nn.functional.topk import TopK, gumbel_topk, hard_topk, iterative_topk, successive_halving_topk


def pair_weights(a: Tensor, b: Tensor, base: float | None) -> Tensor:
    pair = torch.stack([a, b])
    return torch.softmax(pair if base is None else base**pair, dim=0)


def round_by_round(x: Tensor, scores: Tensor, k: int, base: float | None = 20.0) -> tuple[Tensor, Tensor]:
    """Algorithm 1 for one document without padding: (L, D), (L,) -> (K, D), (K,)."""
    candidates = [(position, x[position], scores[position]) for position in range(len(scores))]
    if len(candidates) <= k:
        return x, scores
    slots = k * 2 ** math.ceil(math.log2(len(candidates) / k))
    while len(candidates) > k:
        ranked = sorted(candidates, key=lambda c: (-c[2].item(), c[0])) + [None] * (slots - len(candidates))
        candidates = []
        for i in range(slots // 2):
            strong, weak = ranked[i], ranked[slots - 1 - i]
            if strong is None:
                continue
            if weak is None:
                candidates.append(strong)
                continue
            w = pair_weights(strong[2], weak[2], base)
            vector, score = w[0] * strong[1] + w[1] * weak[1], w[0] * strong[2] + w[1] * weak[2]
            candidates.append((strong[0], vector, score))
        candidates.sort(key=lambda c: c[0])
        slots //= 2
        if slots == k:
            break
    return torch.stack([c[1] for c in candidates]), torch.stack([c[2] for c in candidates])


def is_decided(scores: Tensor, k: int, base: float | None) -> bool:
    """Whether rounding never decides who meets whom: no two scores that rounds have mixed are about equal."""
    rounds = math.ceil(math.log2(len(scores) / k)) if len(scores) > k else 0
    for left in (k * 2**i for i in range(rounds)):
        ranked = round_by_round(scores[:, None], scores, left, base)[1].sort().values
        mixed = ~torch.isin(ranked, scores)
        if ((ranked.diff() < 1e-5) & (mixed[1:] | mixed[:-1])).any():
            return False
    return True


def batch(*lengths: int, dim: int = 3, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    size = (len(lengths), max(lengths))
    padding_mask = torch.arange(size[1]) >= torch.tensor(lengths)[:, None]
    x = torch.randn(*size, dim, generator=generator, dtype=torch.double)
    return x, torch.rand(size, generator=generator, dtype=torch.double), padding_mask


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    k=st.integers(1, 12),
    base=st.sampled_from([None, 2.0, 20.0]),
    levels=st.sampled_from([2, 5, 1000]),
    seed=st.integers(0, 1000),
)
def test_it_equals_the_round_by_round_tournament(
    lengths: list[int], k: int, base: float | None, levels: int, seed: int
) -> None:
    x, scores, padding_mask = batch(*lengths, seed=seed)
    few = (scores * levels).floor() / levels  # few levels give many ties
    if all(is_decided(few[row, :length], k, base) for row, length in enumerate(lengths)):
        scores = few
    x.requires_grad_(), scores.requires_grad_()
    top = successive_halving_topk(x, scores, k, padding_mask=padding_mask, base=base)
    upstream, of_scores = torch.randn(top.x.shape, dtype=torch.double), torch.randn(top.scores.shape)
    got = torch.autograd.grad((top.x * upstream).sum() + (top.scores * of_scores).sum(), (x, scores))
    loss = x.sum() * 0 + scores.sum() * 0
    for row, length in enumerate(lengths):
        vectors, kept = round_by_round(x[row, :length], scores[row, :length], k, base)
        count = len(vectors)
        torch.testing.assert_close(top.x[row, :count], vectors, rtol=0, atol=1e-6)
        torch.testing.assert_close(top.scores[row, :count], kept, rtol=0, atol=1e-6)
        assert (~top.padding_mask[row]).sum() == count
        if max(lengths) > k:
            # Behind the vectors there is nothing.
            assert not any(of[row, count:].any() for of in (top.x, top.scores, top.weights))
        loss = loss + (vectors * upstream[row, :count]).sum() + (kept * of_scores[row, :count]).sum()
        # No input is in two vectors, and the vectors stand in the order of their winners.
        used = top.sources[row][top.weights[row] > 0].tolist()
        assert len(used) == len(set(used)) and top.sources[row, :count, 0].diff().gt(0).all()
    wanted = torch.autograd.grad(loss, (x, scores))
    for mine, theirs, name in zip(got, wanted, ("x", "scores"), strict=True):
        mask = padding_mask if name == "scores" else padding_mask[..., None]
        torch.testing.assert_close(mine.masked_fill(mask, 0), theirs.masked_fill(mask, 0), rtol=1e-5, atol=1e-6)


def test_at_most_k_vectors_pass_through_unchanged() -> None:
    x, scores, padding_mask = batch(4, 2)
    top = successive_halving_topk(x, scores, 4, padding_mask=padding_mask)
    assert top.x is x
    assert torch.equal(top.padding_mask, padding_mask)
    assert top.sources.tolist() == [[[0], [1], [2], [3]]] * 2
    assert top.weights.tolist() == [[[1.0]] * 4, [[1.0], [1.0], [0.0], [0.0]]]


def test_a_document_of_pure_padding_gives_nothing_and_stays_finite() -> None:
    x, scores, _ = batch(9)
    x.requires_grad_(), scores.requires_grad_()
    top = successive_halving_topk(x, scores, 4, padding_mask=torch.ones(1, 9, dtype=torch.bool))
    assert top.padding_mask.all() and top.x.eq(0).all()
    top.x.sum().backward()
    assert x.grad is not None and x.grad.eq(0).all()
    assert scores.grad is not None and scores.grad.eq(0).all()


def test_scores_whose_powers_overflow_select_the_larger_one() -> None:
    top = successive_halving_topk(torch.tensor([[[1.0], [2.0]]]), torch.tensor([[40.0, 40.001]]), 1)
    assert top.x.item() == 2.0


def test_a_backward_pass_inside_autocast_rounds_no_weights_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).requires_grad_() for shape in ((2, 64, 8), (2, 64))]
    out = successive_halving_topk(*inputs, 8).x.square().sum()
    outside = torch.autograd.grad(out, inputs, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        inside = torch.autograd.grad(out, inputs)
    assert all(map(torch.equal, inside, outside))


def test_vectors_and_scores_in_half_precision_give_float32_scores() -> None:
    x, scores, _ = batch(20)
    top = successive_halving_topk(x.bfloat16(), scores.bfloat16(), 4)
    assert top.x.dtype == torch.bfloat16 and top.scores.dtype == torch.float32


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

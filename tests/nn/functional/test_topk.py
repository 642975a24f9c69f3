import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each
from torch import Tensor

from pyramidions.nn.functional.topk import successive_halving_topk


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


def test_four_vectors_condense_to_two_by_hand() -> None:
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]]])
    scores = torch.tensor([[0.1, 0.9, 0.8, 0.3]])
    # sorted: 1, 2, 3, 0; pairs: (1, 0) and (2, 3)
    w10 = 1 / (1 + math.exp(20**0.1 - 20**0.9))
    w23 = 1 / (1 + math.exp(20**0.3 - 20**0.8))
    top = successive_halving_topk(x, scores, 2)
    expected = torch.tensor([[[1 - w10, w10], [2 * w23, 2 * (1 - w23)]]])
    torch.testing.assert_close(top.x, expected)
    assert top.sources.tolist() == [[[1, 0], [2, 3]]]
    torch.testing.assert_close(top.weights, torch.tensor([[[w10, 1 - w10], [w23, 1 - w23]]]))
    torch.testing.assert_close(top.scores, torch.tensor([[w10 * 0.9 + (1 - w10) * 0.1, w23 * 0.8 + (1 - w23) * 0.3]]))


def test_the_plain_softmax_has_the_gradient_of_equation_6() -> None:
    scores = torch.tensor([[0.7, 0.2]], dtype=torch.double, requires_grad=True)
    x = torch.tensor([[[1.0], [0.0]]], dtype=torch.double)
    successive_halving_topk(x, scores, 1, base=None).x.sum().backward()
    w = 1 / (1 + math.exp(0.2 - 0.7))
    expected = torch.tensor([[w * (1 - w), -w * (1 - w)]], dtype=torch.double)
    torch.testing.assert_close(scores.grad, expected)


def test_the_plain_softmaxs_scores_have_the_gradient_of_equation_12() -> None:
    values = [0.9, -0.3, 1.7, 0.4]
    v = torch.tensor([values], dtype=torch.double)
    x = torch.zeros(1, 4, 1, dtype=torch.double)

    def slots(v: Tensor) -> Tensor:
        return successive_halving_topk(x, v, 2, base=None).scores[0]

    jacobian = torch.autograd.functional.jacobian(slots, v)[:, 0]
    # sorted: 2, 0, 3, 1; pairs: (2, 1) and (0, 3); slots in the order of the winners: 0, then 2
    partner, slot = {2: 1, 1: 2, 0: 3, 3: 0}, {0: 0, 3: 0, 2: 1, 1: 1}
    for j in range(4):
        a, b = values[j], values[partner[j]]
        expected = math.exp(a) * (math.exp(b) * (a - b) + math.exp(a) + math.exp(b)) / (math.exp(a) + math.exp(b)) ** 2
        assert jacobian[slot[j], j].item() == pytest.approx(expected)
        assert jacobian[1 - slot[j], j].item() == 0


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
    upstream = torch.randn(top.x.shape, dtype=torch.double)
    got = torch.autograd.grad((top.x * upstream).sum(), (x, scores), allow_unused=True)
    loss = x.sum() * 0 + scores.sum() * 0
    for row, length in enumerate(lengths):
        vectors, kept = round_by_round(x[row, :length], scores[row, :length], k, base)
        count = len(vectors)
        torch.testing.assert_close(top.x[row, :count], vectors, rtol=0, atol=1e-6)
        torch.testing.assert_close(top.scores[row, :count], kept, rtol=0, atol=1e-6)
        assert (~top.padding_mask[row]).sum() == count
        loss = loss + (vectors * upstream[row, :count]).sum()
    wanted = torch.autograd.grad(loss, (x, scores))
    for mine, theirs, name in zip(got, wanted, ("x", "scores"), strict=True):
        if mine is None:  # nothing was pooled: scores do not matter
            assert name == "scores" and max(lengths) <= k
            continue
        mask = padding_mask if name == "scores" else padding_mask[..., None]
        torch.testing.assert_close(mine.masked_fill(mask, 0), theirs.masked_fill(mask, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("base", [None, 20.0])
def test_gradcheck_in_float64(base: float | None) -> None:
    x, scores, padding_mask = batch(11, 7, 3, dim=2)

    def pooled(x: Tensor, scores: Tensor) -> Tensor:
        return successive_halving_topk(x, scores, 3, padding_mask=padding_mask, base=base).x

    assert torch.autograd.gradcheck(pooled, (x.requires_grad_(), scores.requires_grad_()))


@settings(max_examples=50, deadline=None)
@given(length=st.integers(1, 60), extra=st.integers(0, 60), k=st.integers(1, 20), seed=st.integers(0, 99))
def test_the_amount_of_padding_never_changes_the_result(length: int, extra: int, k: int, seed: int) -> None:
    x, scores, _ = batch(length, seed=seed)
    alone = successive_halving_topk(x, scores, k)
    # Padding anywhere: before, behind and in between; with values that would be noticed.
    generator = torch.Generator().manual_seed(seed)
    where = torch.randperm(length + extra, generator=generator)[:length].sort().values
    wide = torch.full((1, length + extra, 3), math.nan, dtype=torch.double)
    wide_scores = torch.full((1, length + extra), 1e30, dtype=torch.double)
    mask = torch.ones(1, length + extra, dtype=torch.bool)
    wide[:, where], wide_scores[:, where], mask[:, where] = x, scores, False
    padded = successive_halving_topk(wide, wide_scores, k, padding_mask=mask)
    real = ~padded.padding_mask
    assert real.sum() == min(length, k)
    assert torch.equal(padded.x[real], alone.x[~alone.padding_mask])
    assert torch.equal(padded.scores[real], alone.scores[~alone.padding_mask])


@settings(max_examples=50, deadline=None)
@given(length=st.integers(1, 70), k=st.integers(1, 20), seed=st.integers(0, 99))
def test_provenance_accounts_for_every_vector_and_every_input(length: int, k: int, seed: int) -> None:
    x, scores, _ = batch(length, seed=seed)
    top = successive_halving_topk(x, scores, k)
    torch.testing.assert_close(top.weights.sum(-1), torch.ones_like(top.scores))
    members = (x[:, None].expand(-1, top.sources.size(1), -1, -1)).gather(
        2, top.sources[..., None].expand(-1, -1, -1, 3)
    )
    torch.testing.assert_close((top.weights[..., None] * members).sum(2), top.x)
    used = top.sources[top.weights > 0]
    assert len(used) == len(set(used.tolist()))
    winners = top.sources[0, :, 0].tolist()
    assert winners == sorted(winners)


def test_at_most_k_vectors_pass_through_unchanged() -> None:
    x, scores, padding_mask = batch(4, 2)
    top = successive_halving_topk(x, scores, 4, padding_mask=padding_mask)
    assert top.x is x
    assert torch.equal(top.padding_mask, padding_mask)
    assert top.sources.tolist() == [[[0], [1], [2], [3]]] * 2
    assert top.weights.tolist() == [[[1.0]] * 4, [[1.0], [1.0], [0.0], [0.0]]]


def test_padding_is_never_selected_before_content() -> None:
    x, scores, padding_mask = batch(9, 2)
    scores[1, 2:] = 1e9
    top = successive_halving_topk(x, scores, 4, padding_mask=padding_mask)
    assert top.padding_mask.tolist() == [[False] * 4, [False, False, True, True]]
    assert torch.equal(top.x[1, :2], x[1, :2])
    assert top.x[1, 2:].eq(0).all() and top.weights[1, 2:].eq(0).all() and top.scores[1, 2:].eq(0).all()


def test_a_document_of_pure_padding_gives_nothing_and_stays_finite() -> None:
    x, scores, _ = batch(9)
    x.requires_grad_(), scores.requires_grad_()
    top = successive_halving_topk(x, scores, 4, padding_mask=torch.ones(1, 9, dtype=torch.bool))
    assert top.padding_mask.all() and top.x.eq(0).all()
    top.x.sum().backward()
    assert x.grad is not None and x.grad.eq(0).all()
    assert scores.grad is not None and scores.grad.eq(0).all()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=33),
    st.integers(1, 8),
    st.sampled_from([None, 1.5, 20.0, 1e6]),
)
def test_any_finite_scores_give_finite_results_and_gradients(values: list[float], k: int, base: float | None) -> None:
    scores = torch.tensor([values], dtype=torch.float32, requires_grad=True)
    x = torch.ones(1, len(values), 2, requires_grad=True)
    top = successive_halving_topk(x, scores, k, base=base)
    assert top.x.isfinite().all() and top.weights.isfinite().all() and top.scores.isfinite().all()
    torch.testing.assert_close(top.x, torch.ones_like(top.x))
    (top.x * torch.arange(top.x.numel()).view_as(top.x)).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()
    assert scores.grad is None or scores.grad.isfinite().all()


def test_scores_whose_powers_overflow_select_the_larger_one() -> None:
    top = successive_halving_topk(torch.tensor([[[1.0], [2.0]]]), torch.tensor([[40.0, 40.001]]), 1)
    assert top.x.item() == 2.0


def test_equal_scores_share_equally_and_the_earlier_position_leads() -> None:
    top = successive_halving_topk(torch.tensor([[[0.0], [1.0], [2.0], [3.0]]]), torch.full((1, 4), 0.5), 2)
    assert top.sources.tolist() == [[[0, 3], [1, 2]]]
    assert top.weights.tolist() == [[[0.5, 0.5], [0.5, 0.5]]]


def test_half_precision_vectors_keep_float32_scores() -> None:
    x, scores, _ = batch(20)
    top = successive_halving_topk(x.bfloat16(), scores.float(), 4)
    assert top.x.dtype == torch.bfloat16 and top.scores.dtype == torch.float32


@for_each(
    ("k", "base", "mask", "rule"),
    [
        (0, 20.0, None, "`k` must be at least 1, but is 0."),
        (1, 1.0, None, "`base` must be above 1, or None for the plain softmax, but is 1.0."),
        (1, 20.0, torch.zeros(1, 3).bool(), r"`padding_mask` must be \(B, L\) = \(1, 4\), but is \(1, 3\)."),
    ],
)
def test_wrong_arguments_are_named(k: int, base: float, mask: Tensor | None, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        successive_halving_topk(torch.zeros(1, 4, 2), torch.zeros(1, 4), k, padding_mask=mask, base=base)


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"are \(1, 4, 2\) and \(1, 5\)"):
        successive_halving_topk(torch.zeros(1, 4, 2), torch.zeros(1, 5), 2)


def test_a_backward_pass_inside_autocast_rounds_no_weights_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).requires_grad_() for shape in ((2, 64, 8), (2, 64))]
    out = successive_halving_topk(*inputs, 8).x.square().sum()
    outside = torch.autograd.grad(out, inputs, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        inside = torch.autograd.grad(out, inputs)
    assert all(map(torch.equal, inside, outside))

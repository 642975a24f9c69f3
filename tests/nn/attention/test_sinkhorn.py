"""Sinkhorn attention: a bucket sees itself, and a mixture of all."""

from collections.abc import Iterator

import pytest
import torch
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import SinkhornAttention
from pyramidions.nn.functional.sinkhorn import sinkhorn
from pyramidions.nn.sublayer import LayerContext
from tests.small_parts import ends_after, vectors


def naive_sorting(q: list[Tensor], k: list[Tensor], iterations: int = 7, temperature: float = 0.7) -> Tensor:
    """Sort buckets (M, E) of one head, in probabilities instead of logarithms: (N, N)."""
    means, others = (torch.stack([bucket.mean(0) for bucket in x]) for x in (q, k))
    matrix = ((means @ others.T / q[0].size(-1) ** 0.5).relu() + 1e-6) ** (1 / temperature)
    for _ in range(iterations):
        matrix = matrix / matrix.sum(1, keepdim=True)
        matrix = matrix / matrix.sum(0, keepdim=True)
    return matrix


def seen(q: Tensor, k: Tensor, v: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield for each position of one head the keys and values that it sees, and whose they are: (n,), (n, L)."""
    length = len(q)
    cut = [x.split(size) for x in (q, k)]
    matrix, identity = naive_sorting(*cut), torch.eye(length, dtype=q.dtype)
    for position in range(length):
        bucket = position // size
        owners = [identity[i] for i in range(bucket * size, min(length, (bucket + 1) * size))]
        for place in range(size):
            share = torch.zeros(length, dtype=q.dtype)
            for other, weight in enumerate(matrix[bucket]):
                if other * size + place < length:
                    share[other * size + place] = weight
            if share.sum() > 0:
                owners.append(share * matrix[bucket].sum() / share.sum())
        whose = torch.stack(owners)
        yield q[position], whose @ k, whose @ v, whose


def naive(q: Tensor, k: Tensor, v: Tensor, size: int) -> Tensor:
    """Attend in one head without padding: (L, E) x 3 -> (L, E)."""
    return torch.stack(
        [(keys @ query / q.size(-1) ** 0.5).softmax(0) @ values for query, keys, values, _ in seen(q, k, v, size)]
    )


@for_each("length", [1, 4, 5, 8, 13])
def test_it_is_the_naive_loop_over_positions_at_any_length_and_padding(length: int) -> None:
    q, k, v = vectors(3, 2, 2, 16, 8).double()
    attention = SinkhornAttention(bucket_size=4).eval()
    padded = attention(q, k, v, LayerContext(ends_after(length, 16)))[0, :, :length]
    alone = attention(*(x[:1, :, :length] for x in (q, k, v)))[0]
    for head in range(2):
        expected = naive(*(x[0, head, :length] for x in (q, k, v)), size=min(4, length))
        torch.testing.assert_close(padded[head], expected)
        torch.testing.assert_close(alone[head], expected)


def test_a_bucket_that_holds_all_is_full_attention() -> None:
    q, k, v = vectors(3, 2, 2, 7, 8)
    expected = (q @ k.mT / 8**0.5).softmax(-1) @ v
    torch.testing.assert_close(SinkhornAttention(bucket_size=7).eval()(q, k, v), expected)


def test_a_permutation_made_by_hand_puts_a_bucket_beside_another() -> None:
    order = [2, 0, 1]
    k, v = vectors(2, 1, 1, 6, 8)
    # The keys of bucket n mean axis n, and queries of bucket n the axis of its partner.
    axes = 9 * torch.eye(8)
    k = (k - k.unflatten(2, (3, 2)).mean(3).repeat_interleave(2, 2)) + axes[:3].repeat_interleave(2, 0)
    q = axes[order].repeat_interleave(2, 0)[None, None]
    attention = SinkhornAttention(bucket_size=2).eval()
    sorting = attention.sorting(*(x.unflatten(2, (3, 2)) for x in (q, k)), None, noisy=False)
    torch.testing.assert_close(sorting[0, 0], torch.eye(3)[order], rtol=0, atol=1e-5)
    out = attention(q, k, v)
    for bucket, partner in enumerate(order):
        places = [2 * bucket, 2 * bucket + 1, 2 * partner, 2 * partner + 1]
        rows = q[0, 0, 2 * bucket : 2 * bucket + 2]
        expected = (rows @ k[0, 0, places].T / 8**0.5).softmax(-1) @ v[0, 0, places]
        torch.testing.assert_close(out[0, 0, 2 * bucket : 2 * bucket + 2], expected, rtol=1e-3, atol=1e-4)


def test_present_rows_and_columns_sum_to_one_and_absent_ones_are_zero() -> None:
    absent = torch.tensor([[[False] * 6], [[False, False, True, False, True, True]]])
    matrix = sinkhorn(vectors(2, 3, 6, 6), absent, 7)
    present = (~absent).float().expand(2, 3, 6)
    torch.testing.assert_close(matrix.sum(-1), present, rtol=0, atol=1e-3)
    torch.testing.assert_close(matrix.sum(-2), present, rtol=0, atol=1e-6)
    assert matrix[1, :, 2].eq(0).all() and matrix[1, :, :, 2].eq(0).all()


def test_gradients_of_the_normalisation_are_right() -> None:
    logits = vectors(2, 2, 4, 4).double().requires_grad_()
    absent = torch.tensor([[[False] * 4], [[False, False, False, True]]])
    assert torch.autograd.gradcheck(lambda x: sinkhorn(x, absent, 3), (logits,))


def test_the_backward_pass_of_the_normalisation_keeps_one_matrix() -> None:
    logits, kept = vectors(1, 1, 64, 64).requires_grad_(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        sinkhorn(logits, torch.zeros(1, 1, 64, dtype=torch.bool), 7)
    assert sorted(kept) == [15 * 64, 64 * 64]


def test_noise_is_drawn_in_training_only_and_anew_each_time() -> None:
    attention, (q, k, v) = SinkhornAttention(bucket_size=2), vectors(3, 1, 2, 8, 4)
    attention.train()
    assert not torch.equal(attention(q, k, v), attention(q, k, v))
    attention.eval()
    assert torch.equal(attention(q, k, v), attention(q, k, v))


@pytest.mark.parametrize("training", [True, False])
def test_what_positions_receive_goes_through_the_mixtures(training: bool) -> None:
    q, k, v = vectors(3, 2, 2, 10, 8)
    received = SinkhornAttention(bucket_size=4).train(training).received(q, k, LayerContext(ends_after(10, 7)))
    for row, length in enumerate((10, 7)):
        total = torch.zeros(length)
        for head in range(2):
            for query, keys, _, whose in seen(*(x[row, head, :length] for x in (q, k, v)), size=4):
                weights = (keys @ query / 8**0.5).softmax(0)
                total += weights @ (whose / whose.sum(1, keepdim=True))
        torch.testing.assert_close(received[row, :length], total)
        assert received[row, :length].sum().item() == pytest.approx(2 * length, rel=1e-5)
        assert received[row, length:].eq(0).all()


@for_each("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_mixture_that_is_hardly_real_stays_finite_and_so_do_gradients(dtype: torch.dtype) -> None:
    # The last bucket has one position, and its keys are like no queries but its own.
    q = -torch.ones(1, 1, 9, 4)
    q[:, :, 8] = 1.0
    q, k, v = ((x * 20).to(dtype).requires_grad_() for x in (q, q, vectors(1, 1, 9, 4) / 20))
    for temperature in (0.7, 0.1, 0.01):
        out = SinkhornAttention(bucket_size=4, temperature=temperature).eval()(q, k, v)
        out.sum().backward()
        assert out.isfinite().all() and all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


def test_temperature_and_iterations_change_the_result() -> None:
    q, k, v = vectors(3, 1, 2, 12, 8)
    base = SinkhornAttention(bucket_size=2).eval()(q, k, v)
    for options in ({"temperature": 0.2}, {"iterations": 1}):
        assert not torch.allclose(SinkhornAttention(bucket_size=2, **options).eval()(q, k, v), base, atol=1e-4)

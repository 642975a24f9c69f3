"""Sinkhorn attention: a bucket sees itself, and a mixture of all."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from pyramidions.nn.attention import SinkhornAttention
from pyramidions.nn.attention.sinkhorn import sinkhorn
from pyramidions.nn.sublayer import LayerContext
from tests.small_parts import ends_after, vectors


def naive_sorting(q: list[Tensor], k: list[Tensor], iterations: float = 7, temperature: float = 0.7) -> Tensor:
    """Sort buckets (M, E) of one head, in probabilities instead of logarithms: (N, N)."""
    means, others = (torch.stack([bucket.mean(0) for bucket in x]) for x in (q, k))
    matrix = ((means @ others.T / q[0].size(-1) ** 0.5).relu() + 1e-6) ** (1 / temperature)
    for _ in range(int(iterations)):
        matrix = matrix / matrix.sum(1, keepdim=True)
        matrix = matrix / matrix.sum(0, keepdim=True)
    return matrix


def seen(
    q: Tensor, k: Tensor, v: Tensor, size: int, **options: float
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield for each position of one head the keys and values that it sees, and whose they are: (n,), (n, L)."""
    length = len(q)
    cut = [x.split(size) for x in (q, k)]
    matrix, identity = naive_sorting(*cut, **options), torch.eye(length, dtype=q.dtype)
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


def naive(q: Tensor, k: Tensor, v: Tensor, size: int, **options: float) -> Tensor:
    """Attend in one head without padding: (L, E) x 3 -> (L, E)."""
    return torch.stack(
        [(near @ query / q.size(-1) ** 0.5).softmax(0) @ of for query, near, of, _ in seen(q, k, v, size, **options)]
    )


@pytest.mark.parametrize(
    ("length", "options"), [(1, {}), (4, {}), (13, {}), (13, {"temperature": 0.2, "iterations": 1})]
)
def test_it_is_the_naive_loop_over_positions_at_any_length_and_padding(length: int, options: dict[str, float]) -> None:
    q, k, v = vectors(3, 2, 2, 16, 8).double()
    attention = SinkhornAttention(bucket_size=4, **options).eval()
    padded = attention(q, k, v, LayerContext(ends_after(length, 16)))[0, :, :length]
    alone = attention(*(x[:1, :, :length] for x in (q, k, v)))[0]
    for head in range(2):
        expected = naive(*(x[0, head, :length] for x in (q, k, v)), size=min(4, length), **options)
        torch.testing.assert_close(padded[head], expected)
        torch.testing.assert_close(alone[head], expected)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_mixture_that_is_hardly_real_stays_finite_and_so_do_gradients(dtype: torch.dtype) -> None:
    # The last bucket has one position, and its keys are like no queries but its own.
    q = -torch.ones(1, 1, 9, 4)
    q[:, :, 8] = 1.0
    q, k, v = ((x * 20).to(dtype).requires_grad_() for x in (q, q, vectors(1, 1, 9, 4) / 20))
    for temperature in (0.7, 0.1, 0.01):
        out = SinkhornAttention(bucket_size=4, temperature=temperature).eval()(q, k, v)
        out.sum().backward()
        assert out.isfinite().all() and all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))

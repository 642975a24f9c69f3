"""Segments and recurrences beside loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.nn.functional.linear_recurrence import linear_recurrence
from pyramidions.nn.functional.segment_means import (
    lasts_of_segments,
    means_of_segments,
    segment_sums,
    upsampled_segments,
)

# Rows that close unequal numbers of segments, one that closes none, and one that closes one at each position.
BOUNDARIES = torch.tensor(
    [
        [0, 1, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 0, 1],
        [1, 0, 0, 0, 0, 0, 0],
    ]
)


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def segments(boundaries: Tensor) -> list[list[range]]:
    """Return the positions of each closed segment of each row."""
    rows = []
    for row in boundaries.tolist():
        ends = [position + 1 for position, ending in enumerate(row) if ending]
        rows.append([range(start, end) for start, end in zip([0, *ends], ends, strict=False)])
    return rows


@pytest.mark.parametrize("boundaries", [BOUNDARIES, BOUNDARIES[1:2], BOUNDARIES[:, :1]])
def test_a_segment_is_the_mean_or_the_last_of_its_vectors_and_comes_back_to_its_positions(boundaries: Tensor) -> None:
    x = vectors(*boundaries.shape, 2).requires_grad_()
    means, lasts = means_of_segments(x, boundaries), lasts_of_segments(x, boundaries)
    assert means.shape == lasts.shape == (len(x), int(boundaries.sum(1).max()), 2)
    for row, found in enumerate(segments(boundaries)):
        for number, positions in enumerate(found):
            torch.testing.assert_close(means[row, number], sum(x[row, i] for i in positions) / len(positions))
            assert lasts[row, number].equal(x[row, positions[-1]])
        assert not means[row, len(found) :].any() and not lasts[row, len(found) :].any()
    # A position reads the last segment that ended there or before.
    s = vectors(len(boundaries), means.size(1) + 1, 2).requires_grad_()
    upsampled = upsampled_segments(s, boundaries)
    for row, ends in enumerate(boundaries.tolist()):
        assert upsampled[row].equal(s[row, [sum(ends[: position + 1]) for position in range(len(ends))]])
    for pool in (means_of_segments, lasts_of_segments):
        assert torch.autograd.gradcheck(lambda x, pool=pool: pool(x, boundaries), x)
    assert torch.autograd.gradcheck(lambda s: upsampled_segments(s, boundaries), s)


def test_positions_after_the_last_boundary_are_summed_behind_the_segments() -> None:
    x = torch.tensor([[[1.0], [2.0], [4.0]], [[1.0], [2.0], [4.0]]])
    sums = segment_sums(x, torch.tensor([[1, 0, 0], [1, 0, 1]]))
    assert sums.total.squeeze(2).tolist() == [[1.0, 6.0, 0.0], [1.0, 6.0, 0.0]]
    assert sums.size.tolist() == [[1, 2, 0], [1, 2, 0]] and sums.closed.tolist() == [1, 2]


def matrices(x: Tensor, boundaries: Tensor) -> Tensor:
    """Pool by the matrices (B, L, K) of shares of Nawrot et al. 2023, boundaries differentiable."""
    count = int(boundaries.sum(1).max())
    before = boundaries.cumsum(1) - boundaries
    offset = torch.arange(count) - before[..., None]
    share = (1 - offset) * (offset == 0)
    size = share.sum(1, keepdim=True)
    share = share / torch.where(size == 0, 1, size)
    return torch.einsum("bld,bls->bsd", x, share)


@pytest.mark.parametrize("boundaries", [BOUNDARIES, BOUNDARIES[2:3], (torch.rand(3, 40) > 0.7).long()])
def test_gradients_of_boundaries_are_those_of_the_matrices(boundaries: Tensor) -> None:
    x, b = vectors(*boundaries.shape, 5).requires_grad_(), boundaries.double().requires_grad_()
    expected, found = matrices(x, b), means_of_segments(x, b)
    # What follows a row's last boundary is a segment there if another row has more of them, but nothing reads it.
    closed = torch.arange(found.size(1)) < boundaries.sum(1, keepdim=True)
    grad = vectors(*found.shape) * closed[..., None]
    torch.testing.assert_close(found, expected * closed[..., None], rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(out, (x, b), grad) for out in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_long_segments_are_summed_and_counted_exactly_in_half_precision() -> None:
    x = torch.full((1, 6000, 1), 3.0, dtype=torch.float16, requires_grad=True)
    boundaries = torch.zeros(1, 6000, dtype=torch.float16)
    boundaries[0, [1999, 5999]] = 1
    means = means_of_segments(x, boundaries)
    assert means.dtype == torch.float16 and means.flatten().tolist() == [3.0, 3.0]
    means.sum().backward()
    assert x.grad is not None and x.grad[0, 0].item() == pytest.approx(1 / 2000, rel=1e-2)


def loop(decay: Tensor, new: Tensor, before: Tensor | None = None) -> Tensor:
    c, found = torch.zeros_like(new[:, 0]) if before is None else before, []
    for t in range(new.size(1)):
        c = decay[:, t] * c + new[:, t]
        found.append(c)
    return torch.stack(found, dim=1)


@settings(deadline=None, max_examples=30)
@given(length=st.integers(1, 40), batch=st.integers(1, 3), seed=st.integers(0, 99), starts=st.booleans())
def test_rounds_equal_the_loop(length: int, batch: int, seed: int, starts: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    decay = torch.rand(batch, length, 2, generator=generator).double()
    # Some decays are exactly 0 or 1.
    decay = (decay * 1.4 - 0.2).clamp(0, 1)
    new = torch.randn(batch, length, 2, generator=generator).double()
    before = torch.randn(batch, 2, generator=generator).double() if starts else None
    torch.testing.assert_close(linear_recurrence(decay, new, before), loop(decay, new, before), rtol=1e-12, atol=1e-12)


def test_thousands_of_positions_equal_the_loop_in_float32() -> None:
    torch.manual_seed(0)
    # From what is forgotten at once to what is never.
    decay, new = (torch.randn(2, 8192, 4) + torch.tensor([-20, 0, 5, 30])).sigmoid(), torch.randn(2, 8192, 4)
    found, exact = linear_recurrence(decay, new), loop(decay.double(), new.double())
    assert exact.abs().max() > 50
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-3)


def test_gradients_are_those_of_the_loop() -> None:
    torch.manual_seed(0)
    given = [torch.rand(2, 7, 3), torch.randn(2, 7, 3), torch.randn(2, 3)]
    given = [one.double().requires_grad_() for one in given]
    assert torch.autograd.gradcheck(linear_recurrence, given)
    expected, found = (torch.autograd.grad(run(*given).square().sum(), given) for run in (loop, linear_recurrence))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_gradients_keep_two_tensors_whatever_the_length() -> None:
    decay, new = torch.rand(1, 4096, 2).requires_grad_(), torch.randn(1, 4096, 2).requires_grad_()
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        linear_recurrence(decay, new)
    assert [x.shape for x in kept] == [(1, 4096, 2)] * 2

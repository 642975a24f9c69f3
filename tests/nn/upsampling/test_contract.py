"""What every upsampler promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, ends_after, vectors
from torch import Tensor

from pyramidions.nn.sequence import Sequence
from pyramidions.nn.upsampling import UPSAMPLING, Upsampler

kinds = pytest.mark.parametrize("kind", UPSAMPLING.names)
repeating = pytest.mark.parametrize("kind", [kind for kind in UPSAMPLING.names if not UPSAMPLING[kind].is_read])
windows = pytest.mark.parametrize(("length", "window"), [(8, 4), (9, 2), (3, 4)])


def make(kind: str, window: int) -> Upsampler:
    torch.manual_seed(0)
    return UPSAMPLING.build(kind, {}, **SETTING, window=window, normalize_before=True)


def pooled(x: Tensor) -> Sequence:
    return Sequence(x, torch.zeros(x.shape[:2], dtype=torch.bool))


def vectors_of(sequence: Sequence) -> Tensor:
    """Return what goes on, and what is read of the pooled vectors, all in one row: (B, L D + K D)."""
    above = [] if sequence.above is None else [sequence.above.x.flatten(1)]
    return torch.cat([sequence.x.flatten(1), *above], dim=1)


def before(length: int, batch: int = 2) -> Sequence:
    return Sequence(vectors(batch, length, DIM), ends_after(*range(length, length - batch, -1)))


@repeating
def test_with_a_window_of_one_position_both_are_added(kind: str) -> None:
    unpooled, x = before(5), vectors(2, 5, DIM, seed=1)
    assert make(kind, 1)(pooled(x), unpooled).x.equal(x + unpooled.x)


@repeating
@windows
def test_every_position_reads_the_vector_that_it_was_pooled_to(kind: str, length: int, window: int) -> None:
    unpooled, x = before(length), vectors(2, -(-length // window), DIM, seed=1)
    upsampler = make(kind, window)
    found = upsampler(pooled(x), unpooled).x
    for vector in range(x.size(1)):
        changed = x.clone()
        changed[:, vector] += 1
        moved = (upsampler(pooled(changed), unpooled).x != found).all(dim=-1)
        assert moved[0].nonzero().flatten().tolist() == list(
            range(vector * window, min(length, vector * window + window))
        )


@kinds
@windows
def test_the_length_comes_back_and_gradients_reach_all_that_was_joined(kind: str, length: int, window: int) -> None:
    unpooled, x = before(length), vectors(2, -(-length // window), DIM, seed=1).requires_grad_()
    unpooled.x.requires_grad_()
    upsampler = make(kind, window)
    found = upsampler(pooled(x), unpooled)
    assert found.x.shape == unpooled.x.shape and found.padding_mask is unpooled.padding_mask
    vectors_of(found).pow(3).sum().backward()
    for grad in (x.grad, unpooled.x.grad, *(weight.grad for weight in upsampler.parameters())):
        assert grad is not None and grad.isfinite().all() and (grad.abs().sum(dim=-1) > 0).all()

"""What every way to pool segments promises; tests/nn/test_language_model.py holds steps to it."""

import pytest
import torch
from small_parts import DIM, SETTING, vectors

from pyramidions.nn.segments import SEGMENTS, SegmentPooler

kinds = pytest.mark.parametrize("kind", SEGMENTS.names)
BOUNDARIES = torch.tensor([[0, 1, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1, 0, 1]])


def make(kind: str) -> SegmentPooler:
    return SEGMENTS.build(kind, {}, **SETTING)


@kinds
def test_each_segment_becomes_one_vector_and_the_others_zeros(kind: str) -> None:
    pooled = make(kind)(vectors(3, 8, DIM), BOUNDARIES)
    assert pooled.shape == (3, 6, DIM)
    assert pooled.ne(0).any(2).sum(1).tolist() == [3, 0, 6]
    # Equal vectors pool to themselves.
    x = vectors(1, 1, DIM).expand(3, 8, DIM)
    torch.testing.assert_close(make(kind)(x, BOUNDARIES)[0, :3], x[0, :3])


@kinds
def test_no_segment_depends_on_others_or_on_what_follows(kind: str) -> None:
    x = vectors(3, 8, DIM)
    before, changed = make(kind)(x, BOUNDARIES), x.clone()
    changed[:, 4:] += 1
    assert make(kind)(changed, BOUNDARIES)[0, 0].equal(before[0, 0])
    assert make(kind)(changed, BOUNDARIES)[2, :2].equal(before[2, :2])


@kinds
def test_boundaries_learn_where_the_kind_says_so(kind: str) -> None:
    boundaries = BOUNDARIES.float().requires_grad_()
    pooled = make(kind)(vectors(3, 8, DIM).requires_grad_(), boundaries)
    (grad,) = torch.autograd.grad(pooled.square().sum(), boundaries, allow_unused=True)
    assert (grad is not None and bool(grad.any())) == SEGMENTS[kind].teaches_boundaries

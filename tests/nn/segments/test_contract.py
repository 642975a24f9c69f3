"""What every way to pool segments promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, vectors
from torch import Tensor

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
@pytest.mark.parametrize("steps", [(1,) * 8, (3, 4, 1)])
def test_steps_close_the_segments_of_a_whole_pass(kind: str, steps: tuple[int, ...]) -> None:
    pooler, x = make(kind), vectors(3, 8, DIM)
    whole, state, start = pooler(x, BOUNDARIES), pooler.new_state(), 0
    found: list[list[Tensor]] = [[], [], []]
    for new in steps:
        part = slice(start, start := start + new)
        closed = pooler.step(x[:, part], BOUNDARIES[:, part], state)
        for row, count in enumerate(BOUNDARIES[:, part].sum(1).tolist()):
            found[row] += closed[row, :count]
    for row, count in enumerate(BOUNDARIES.sum(1).tolist()):
        assert len(found[row]) == count
        if count:
            torch.testing.assert_close(torch.stack(found[row]), whole[row, :count])


@kinds
def test_a_state_follows_its_rows(kind: str) -> None:
    pooler, x = make(kind), vectors(3, 8, DIM)
    state = pooler.new_state()
    pooler.step(x[:, :4], BOUNDARIES[:, :4], state)
    order = torch.tensor([2, 0, 0])
    if state is not None:
        state.reorder(order, order)
    closed = pooler.step(x[order, 4:], BOUNDARIES[order, 4:], state)
    torch.testing.assert_close(closed[1], closed[2])
    torch.testing.assert_close(closed[1, :2], pooler(x, BOUNDARIES)[0, 1:3])


@kinds
def test_boundaries_learn_where_the_kind_says_so(kind: str) -> None:
    boundaries = BOUNDARIES.float().requires_grad_()
    pooled = make(kind)(vectors(3, 8, DIM).requires_grad_(), boundaries)
    (grad,) = torch.autograd.grad(pooled.square().sum(), boundaries, allow_unused=True)
    assert (grad is not None and bool(grad.any())) == SEGMENTS[kind].teaches_boundaries

"""What every way to pool segments and to bring them back promises; language models hold their steps to it."""

import pytest
import torch
from noise import add_noise
from small_parts import DIM, SETTING, vectors
from torch import Tensor

from pyramidions.nn.boundaries import Segmentation
from pyramidions.nn.segment_pooling import (
    SEGMENT_UPSAMPLING,
    SEGMENTS,
    SegmentPooler,
    SegmentUpsampler,
    SmoothedSegments,
)

pooled = pytest.mark.parametrize("kind", SEGMENTS.names)
BOUNDARIES = torch.tensor([[0, 1, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1, 0, 1]])
MARKED = torch.tensor([[1, 0, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]])


def make(kind: str) -> SegmentUpsampler:
    torch.manual_seed(0)
    made = SEGMENT_UPSAMPLING.build(kind, {}, **SETTING)
    add_noise(made, 0.3)
    return made.double()


def segmentation(marked: Tensor = MARKED) -> Segmentation:
    """Probabilities agree with boundaries, and one of them is extreme."""
    logits = torch.where(marked != 0, 1, -1) * (vectors(*marked.shape, seed=5).double().abs() + 0.01)
    logits[0, 0] = 40
    return Segmentation(marked.double(), logits)


def loop(made: SmoothedSegments, read: Tensor, marked: Segmentation, x: Tensor) -> Tensor:
    """What Hwang et al. 2025 write, position by position; the confidence is a factor of its own."""
    p, rows = marked.probabilities, []
    for row in range(len(x)):
        average, segment, found = torch.zeros(DIM).double(), 0, []
        for t in range(x.size(1)):
            if marked.boundaries[row, t]:
                segment += 1
                weight = p[row, t].clamp(1e-4, 1 - 1e-4)
                average = weight * read[row, segment] + (1 - weight) * average
            confidence = p[row, t] if marked.boundaries[row, t] else 1 - p[row, t]
            one = confidence + (1 - confidence).detach()
            found.append(one * average + made.residual @ x[row, t] + made.bias)
        rows.append(torch.stack(found))
    return torch.stack(rows)


def test_smoothing_and_its_gradients_are_those_of_a_loop() -> None:
    made, marked = make("smoothing"), segmentation()
    assert isinstance(made, SmoothedSegments)
    given = [vectors(3, 4, DIM, seed=1).double(), vectors(3, 6, DIM).double(), marked.logits]
    read, x, logits = (one.requires_grad_() for one in given)
    outputs = [made(made.along(read, marked), marked, x), loop(made, read, marked, x)]
    torch.testing.assert_close(*outputs)
    of = [read, x, logits, made.residual]
    torch.testing.assert_close(*(torch.autograd.grad(out.square().sum(), of, retain_graph=True) for out in outputs))


def pooler(kind: str) -> SegmentPooler:
    return SEGMENTS.build(kind, {}, **SETTING)


@pooled
def test_boundaries_learn_where_the_kind_says_so(kind: str) -> None:
    boundaries = BOUNDARIES.float().requires_grad_()
    found = pooler(kind)(vectors(3, 8, DIM).requires_grad_(), boundaries)
    (grad,) = torch.autograd.grad(found.square().sum(), boundaries, allow_unused=True)
    assert (grad is not None and bool(grad.any())) == SEGMENTS[kind].teaches_boundaries

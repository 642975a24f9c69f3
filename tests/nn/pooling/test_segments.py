"""Segments pooling: which segments come out, and what their boundaries learn."""

import math

import pytest
import torch
from small_parts import DIM, ends_after, vectors
from torch import Tensor

from pyramidions.nn.pooling import Pooled, SegmentsPooler
from pyramidions.nn.sequence import PoolingContext, Sequence

NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("segments ask for no attention"))


class Given(torch.nn.Module):
    """Predicts given logits."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits


def pool(k: int, *logits: list[float], real: tuple[int, ...] | None = None) -> tuple[Pooled, Sequence, SegmentsPooler]:
    """Pool documents whose boundaries have these logits; of each the first ``real`` positions are no padding."""
    length = len(logits[0])
    pooler = SegmentsPooler(k, 4, DIM, 16).eval()
    pooler.boundaries.predictor = Given(torch.tensor(logits))
    mask = ends_after(*(real or [length] * len(logits)), width=length)
    given = Sequence(vectors(len(logits), length, DIM), mask)
    return pooler(given, NO_CONTEXT), given, pooler


@pytest.mark.parametrize(
    ("k", "logits", "starts"),
    [
        (4, [-1.0, 2.0, -1.0, -1.0, 1.0, 0.5], [0, 2, 5]),
        # Boundaries that are all unlikely, 0.27 each but one, still end segments: 2.3 in all.
        (4, [-1.0, -1.0, -0.5, -1.0, -1.0, -1.0, -1.0, -1.0], [0, 3]),
        # The end of the text ends a segment however unlikely.
        (4, [2.0, -9.0, -9.0, -9.0], [0]),
        # Of more than k the most probable stay.
        (2, [1.0, 3.0, 2.0, 2.5, -1.0], [0, 2]),
        (1, [1.0, 3.0, 2.0], [0]),
        # A boundary at the end of the text does not take the place of another.
        (2, [1.0, -1.0, 9.0], [0, 1]),
    ],
)
def test_as_many_segments_as_probabilities_sum_to_end_at_the_most_probable_positions(
    k: int, logits: list[float], starts: list[int]
) -> None:
    pooled, given, _ = pool(k, logits)
    ends = [*starts[1:], len(logits)]
    expected = torch.stack([given.x[0, start:end].mean(0) for start, end in zip(starts, ends, strict=True)])
    torch.testing.assert_close(pooled.x[0], expected)
    assert pooled.lengths == [len(starts)]


def test_documents_of_fewer_segments_are_padded_with_zeros() -> None:
    pooled, _, _ = pool(4, [2.0, 2.0, 2.0], [-1.0, -1.0, 5.0], [5.0, 5.0, 5.0], real=(3, 2, 0))
    assert pooled.lengths == [3, 1, 0]
    assert pooled.padding_mask.tolist() == [[False] * 3, [False, True, True], [True] * 3]
    assert not pooled.x[pooled.padding_mask].any()
    assert pooled.sources is not None and pooled.weights is not None
    assert pooled.sources[1, 0].tolist() == [0, 1] and pooled.weights[1, 0].tolist() == [0.5, 0.5]
    assert not pooled.weights[pooled.padding_mask].any()


def test_a_dropped_boundary_learns_nothing_and_a_position_without_one_does() -> None:
    torch.manual_seed(0)
    pooler = SegmentsPooler(2, 4, DIM, 16)
    # So sure that noise changes none.
    predictor = pooler.boundaries.predictor = Given(torch.tensor([[6.0, 8.0, -6.0, 7.0, -6.0]]))
    pooler(Sequence(vectors(1, 5, DIM), ends_after(5, width=5)), NO_CONTEXT).x.square().sum().backward()
    grad = predictor.logits.grad
    assert grad is not None
    assert (grad[0] != 0).tolist() == [False, True, True, False, False]


def test_training_begins_with_as_many_boundaries_as_the_prior_asks_for() -> None:
    pooler = SegmentsPooler(64, 8, DIM, 16)
    assert pooler.boundaries.predictor.fc2.bias.sigmoid().item() == pytest.approx(1 / 8)


def test_the_prior_of_a_training_pass_is_told_once_in_nats_for_each_position() -> None:
    torch.manual_seed(0)
    pooler = SegmentsPooler(3, 4, DIM, 16, prior=0.25)
    pooler.boundaries.predictor = Given(torch.tensor([[9e9, -9e9, -9e9, -9e9], [9e9, 9e9, 9e9, 9e9]]))
    pooler(Sequence(vectors(2, 4, DIM), ends_after(4, 2, width=4)), NO_CONTEXT)
    one_of_four, two_of_two = 4 * 0.25 * 0.75**3, 0.25**2
    expected = (-math.log(one_of_four) / 4 - math.log(two_of_two) / 2) / 2
    loss = pooler.regulariser()
    assert loss is not None and loss.item() == pytest.approx(expected)
    assert pooler.regulariser() is None
    # There is none of evaluation.
    assert pool(2, [1.0, 2.0])[2].regulariser() is None

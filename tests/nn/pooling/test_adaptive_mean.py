"""Weighted means of windows that overlap."""

import pytest
import torch
from small_parts import DIM, ends_after, vectors
from torch import Tensor

from pyramidions.nn.pooling import AdaptiveMeanPooler
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence

NO_CONTEXT = PoolingContext(lambda: torch.empty(0))


class Given(Scorer):
    """Rates vectors by their first value."""

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return sequence.x[..., 0].detach().abs()


@pytest.mark.parametrize(("stride", "overlap"), [(3, 0), (3, 1), (2, 5), (24, 8)])
def test_each_window_is_the_mean_of_its_members_weighted_by_their_scores(stride: int, overlap: int) -> None:
    lengths = (13, 7, 1)
    x = vectors(3, 13, DIM)
    pooled = AdaptiveMeanPooler(stride, Given(), overlap)(Sequence(x, ends_after(*lengths)), NO_CONTEXT)
    for row, length in enumerate(lengths):
        starts = range(0, length, stride)
        windows = [x[row, start : min(start + stride + overlap, length)] for start in starts]
        means = [(each[:, :1].abs() * each).sum(0) / each[:, 0].abs().sum() for each in windows]
        torch.testing.assert_close(pooled.x[row, : len(means)], torch.stack(means))
        assert pooled.padding_mask[row].tolist() == [place >= len(means) for place in range(pooled.x.size(1))]


def test_scores_of_zero_are_equal() -> None:
    x = vectors(1, 6, DIM)
    x[..., 0] = 0.0
    pooled = AdaptiveMeanPooler(3, Given())(Sequence(x, ends_after(6)), NO_CONTEXT)
    torch.testing.assert_close(pooled.x[0], torch.stack([x[0, :3].mean(0), x[0, 3:].mean(0)]))

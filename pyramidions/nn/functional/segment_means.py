"""Segments of a sequence: one vector for each, and back to its positions.

Boundaries are 1 at the last position of a segment and 0 elsewhere. Positions after the last boundary form no segment.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyramidions.nn.functional.precision import full_precision


class SegmentSums(NamedTuple):
    """Sums over segments."""

    # (B, K + 1, D), the sum of each segment's vectors, in float32 or better; after the last segment of a row stands
    # what follows its last boundary, and then zeros
    total: Tensor
    size: Tensor  # (B, K + 1), how many vectors those are
    number: Tensor  # (B, L), the segment of each position
    closed: Tensor  # (B,), how many segments a row has

    def means(self) -> Tensor:
        """Return the mean of each segment, zeros after a row's last: (B, K, D)."""
        return _shared(self.total[:, :-1], self.size, self.closed)


def segment_sums(x: Tensor, boundaries: Tensor, most: int | None = None) -> SegmentSums:
    """Sum the vectors of each segment: (B, L, D), (B, L).

    ``most`` is K, if it is known to be at least as many segments as any row has. Without, the host waits for a GPU to
    count.
    """
    ends = boundaries != 0
    until = ends.cumsum(dim=1)
    closed, number = until[:, -1], until - ends.long()
    width = (int(closed.max()) if most is None else most) + 1
    # (B, L) -> (BL,): a row's segments follow those of the row before
    place = (number + width * torch.arange(len(x), device=x.device)[:, None]).flatten()
    vectors = full_precision(x).flatten(0, 1)
    total = vectors.new_zeros(len(x) * width, x.size(2)).index_add(0, place, vectors)
    count = place.new_zeros(len(x) * width).index_add(0, place, torch.ones_like(place))
    return SegmentSums(total.unflatten(0, (-1, width)), count.unflatten(0, (-1, width)), number, closed)


def _shared(x: Tensor, count: Tensor, closed: Tensor) -> Tensor:
    """Divide by the size of each segment, zeros after a row's last: (B, K, D), (B, K + 1), (B,) -> (B, K, D)."""
    beyond = torch.arange(x.size(1), device=x.device) >= closed[:, None]
    return (x / count[:, :-1, None].clamp(min=1)).masked_fill(beyond[..., None], 0.0)


class _MeansOfSegments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, boundaries: Tensor, most: int | None) -> Tensor:
        sums = segment_sums(x, boundaries, most)
        means = sums.means()
        ctx.save_for_backward(x, means, sums.size, sums.number, sums.closed)
        ctx.kind = boundaries.dtype
        return means.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        x, means, count, number, closed = ctx.saved_tensors
        # Of what follows the last boundary nothing is read: (B, K, D) -> (B, K + 1, D)
        share, means = (F.pad(each, (0, 0, 0, 1)) for each in (_shared(full_precision(grad), count, closed), means))
        of_x = _gathered(share, number)
        of_boundaries = None
        if ctx.needs_input_grad[1]:
            # What the loss gains where a position weighs more in its segment: (B, L)
            gain = (of_x * full_precision(x)).sum(dim=2) - (share * means).sum(dim=2).gather(1, number)
            # A boundary moves all that stands after it.
            of_boundaries = (gain.flip(1).cumsum(dim=1).flip(1) - gain).to(ctx.kind)
        return of_x.to(x.dtype), of_boundaries, None


def means_of_segments(x: Tensor, boundaries: Tensor, most: int | None = None) -> Tensor:
    """Return the mean of each segment's vectors: (B, L, D), (B, L) -> (B, K, D), zeros after a row's last segment.

    K is the most segments of a row, or ``most``, as in `segment_sums`. Boundaries may have gradients: those of the
    pooling matrices (B, L, K) of Nawrot et al. 2023 (section 3.2), whose column for a segment is the share of each
    position. With n positions in segment k, G its gradient, and m its mean, position i has g = G (x_i - m) / n, and the
    gradient of a boundary is the sum of all g after it.
    """
    return _MeansOfSegments.apply(x, boundaries, most)


def lasts_of_segments(x: Tensor, boundaries: Tensor) -> Tensor:
    """Return each segment's last vector: (B, L, D), (B, L) -> (B, K, D), zeros after a row's last segment."""
    ends = boundaries != 0
    number = ends.cumsum(dim=1) - 1
    rows, positions = ends.nonzero(as_tuple=True)
    lasts = x.new_zeros(len(x), int(number[:, -1].max()) + 1, x.size(2))
    return lasts.index_put((rows, number[rows, positions]), x[rows, positions])


def upsampled_segments(x: Tensor, boundaries: Tensor) -> Tensor:
    """Return for each position the vector of the last segment that ended there or before.

    (B, K + 1, D), the null group and one vector for each segment, (B, L) -> (B, L, D).
    """
    return _gathered(x, (boundaries != 0).cumsum(dim=1))


def _gathered(x: Tensor, number: Tensor) -> Tensor:
    """(B, K, D), (B, L) -> (B, L, D)."""
    return x.gather(1, number[..., None].expand(-1, -1, x.size(2)))

"""Ways to pool segments, and to bring them back to positions: roles, registries and kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.boundaries import Segmentation
from pyramidions.nn.functional.linear_recurrence import linear_recurrence
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.functional.segment_means import (
    lasts_of_segments,
    means_of_segments,
    segment_sums,
    upsampled_segments,
)
from pyramidions.nn.sublayer import State


class SegmentPooler(nn.Module, ABC):
    """Makes one vector of each segment.

    Boundaries are 1 at the last position of a segment and 0 elsewhere. Positions after the last boundary form no
    segment.
    """

    #: whether boundaries can learn from what becomes of the segments
    teaches_boundaries: ClassVar[bool]

    @abstractmethod
    def forward(self, x: Tensor, boundaries: Tensor) -> Tensor:
        """Pool whole sequences: (B, L, D), (B, L) -> (B, K, D), zeros after a row's last segment.

        K is the most segments of a row.
        """

    def new_state(self) -> State | None:
        """Return the state before the first cached step; None if steps need nothing of earlier ones."""
        return None

    def step(self, x: Tensor, boundaries: Tensor, state: State | None, padding_mask: Tensor | None = None) -> Tensor:
        """Pool the segments that new positions close, and extend the state in place.

        (B, T, D), (B, T) -> (B, K, D), zeros after the last segment that a row closes. Padding has no boundaries.
        """
        return self(x, boundaries)


SEGMENTS: Registry[SegmentPooler] = Registry("segments")


@SEGMENTS.register("last")
class LastSegmentPooler(SegmentPooler):
    """A segment's last vector: sub-sampling (Nawrot et al. 2023, table 2)."""

    teaches_boundaries = False

    def forward(self, x: Tensor, boundaries: Tensor) -> Tensor:
        return lasts_of_segments(x, boundaries)


class OpenSegment(State):
    """The sum (B, D) and number (B,) of vectors since a row's last boundary; None before the first step."""

    def __init__(self) -> None:
        self.total: Tensor | None = None
        self.size: Tensor | None = None

    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        self.total = None if self.total is None else self.total.index_select(0, order)
        self.size = None if self.size is None else self.size.index_select(0, order)


@SEGMENTS.register("mean")
class MeanSegmentPooler(SegmentPooler):
    """The mean of a segment's vectors (Nawrot et al. 2023, section 3.2)."""

    teaches_boundaries = True

    def forward(self, x: Tensor, boundaries: Tensor) -> Tensor:
        return means_of_segments(x, boundaries)

    def new_state(self) -> State:
        return OpenSegment()

    def step(self, x: Tensor, boundaries: Tensor, state: State | None, padding_mask: Tensor | None = None) -> Tensor:
        assert isinstance(state, OpenSegment)
        sums = segment_sums(x if padding_mask is None else x.masked_fill(padding_mask[..., None], 0.0), boundaries)
        if state.total is not None and state.size is not None:
            first = torch.arange(sums.size.size(1), device=x.device) == 0
            # (B, D) -> (B, 1, D): a row's first segment began in earlier steps
            total = sums.total + state.total[:, None] * first[:, None]
            sums = sums._replace(total=total, size=sums.size + state.size[:, None] * first)
        last = sums.closed[:, None]
        state.size = sums.size.gather(1, last).squeeze(1)
        if padding_mask is not None:
            # It stands after a row's last boundary.
            state.size = state.size - padding_mask.sum(dim=1)
        # (B, K + 1, D) -> (B, D)
        state.total = sums.total.gather(1, last[..., None].expand(-1, -1, x.size(2))).squeeze(1)
        return sums.means().to(x.dtype)


class SegmentUpsampler(nn.Module, ABC):
    """Joins what was read of segments with the positions that they were made of."""

    #: whether it needs probabilities of boundaries, which learn from it
    reads_probabilities: ClassVar[bool] = False

    def along(self, read: Tensor, marked: Segmentation, before: Tensor | None = None) -> Tensor:
        """Return what positions read of segments, which may depend on earlier ones: (B, K, D) -> (B, K, D).

        Segments are those that end in ``marked``, behind the null group if ``before`` is None. Else that is (B, D),
        what this returned of each row's last segment.
        """
        return read

    @abstractmethod
    def forward(self, read: Tensor, marked: Segmentation, x: Tensor) -> Tensor:
        """Join what `along` returned, (B, K + 1, D), with what it was made of: (B, L, D) -> (B, L, D).

        The first of the K + 1 vectors is the null group's, or the last that there was before.
        """


SEGMENT_UPSAMPLING: Registry[SegmentUpsampler] = Registry("upsampling")


@SEGMENT_UPSAMPLING.register("repeat")
class RepeatedSegments(SegmentUpsampler):
    """Repeats a segment's vector from its last position on, and adds the positions (Nawrot et al. 2023, section 2)."""

    def forward(self, read: Tensor, marked: Segmentation, x: Tensor) -> Tensor:
        return x + upsampled_segments(read, marked.boundaries)


@SEGMENT_UPSAMPLING.register("smoothing")
class SmoothedSegments(SegmentUpsampler):
    """Repeats an exponential moving average of segments, and adds a projection of the positions (Hwang et al. 2025).

    A segment weighs as much as its boundary is probable, and the average of those before it the rest (section 2.2).
    Where there is none yet, zeros are read, and not the null group. What a position reads is multiplied by the
    probability of what was decided there, a boundary or none, in the gradient only. The projection starts at zero.
    Probabilities so learn from the loss of the model.
    """

    reads_probabilities = True
    _LEAST = 1e-4

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.residual = nn.Parameter(torch.zeros(embed_dim, embed_dim))
        self.bias = nn.Parameter(torch.zeros(embed_dim))

    def along(self, read: Tensor, marked: Segmentation, before: Tensor | None = None) -> Tensor:
        assert marked.probabilities is not None
        weight = marked.probabilities.clamp(self._LEAST, 1 - self._LEAST)
        # (B, L) -> (B, K, 1), zeros after a row's last segment
        weight = lasts_of_segments(weight[..., None], marked.boundaries)
        if before is None:
            # The null group weighs nothing.
            weight = F.pad(weight, (0, 0, 1, 0))
        earlier = None if before is None else full_precision(before)
        return linear_recurrence((1 - weight).expand_as(read), weight * read, earlier).to(read.dtype)

    def forward(self, read: Tensor, marked: Segmentation, x: Tensor) -> Tensor:
        p = marked.probabilities
        assert p is not None
        decided = torch.where(marked.boundaries != 0, p, 1 - p)
        # exactly one
        factor = 1 + (decided - decided.detach())
        smooth = upsampled_segments(read, marked.boundaries) * factor[..., None].to(read.dtype)
        return smooth + F.linear(x, self.residual, self.bias)

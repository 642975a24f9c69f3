"""What makes one vector of each segment: the role, the registry of kinds, and the kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.segments import lasts_of_segments, means_of_segments, segment_sums
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

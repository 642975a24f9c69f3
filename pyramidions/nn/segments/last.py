"""The last vector of a segment."""

from torch import Tensor

from pyramidions.nn.functional.segments import lasts_of_segments
from pyramidions.nn.segments.core import SEGMENTS, SegmentPooler


@SEGMENTS.register("last")
class LastSegmentPooler(SegmentPooler):
    """A segment's last vector: sub-sampling (Nawrot et al. 2023, table 2)."""

    teaches_boundaries = False

    def forward(self, x: Tensor, boundaries: Tensor) -> Tensor:
        return lasts_of_segments(x, boundaries)

"""Ways to pool segments, one kind per file; importing this package fills the registry."""

from pyramidions.nn.segments.core import SEGMENTS, SegmentPooler
from pyramidions.nn.segments.last import LastSegmentPooler
from pyramidions.nn.segments.mean import MeanSegmentPooler

__all__ = ["SEGMENTS", "LastSegmentPooler", "MeanSegmentPooler", "SegmentPooler"]

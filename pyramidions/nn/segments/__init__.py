"""Ways to pool segments, one kind per file; importing this package fills the registry."""

from pyramidions.nn.segments.core import SEGMENTS as SEGMENTS
from pyramidions.nn.segments.core import LastSegmentPooler as LastSegmentPooler
from pyramidions.nn.segments.core import MeanSegmentPooler as MeanSegmentPooler
from pyramidions.nn.segments.core import SegmentPooler as SegmentPooler

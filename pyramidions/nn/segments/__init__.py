"""Ways to pool segments, and to bring them back to positions; importing this package fills both registries."""

from pyramidions.nn.segments.core import SEGMENTS as SEGMENTS
from pyramidions.nn.segments.core import LastSegmentPooler as LastSegmentPooler
from pyramidions.nn.segments.core import MeanSegmentPooler as MeanSegmentPooler
from pyramidions.nn.segments.core import SegmentPooler as SegmentPooler
from pyramidions.nn.segments.upsampling import SEGMENT_UPSAMPLING as SEGMENT_UPSAMPLING
from pyramidions.nn.segments.upsampling import RepeatedSegments as RepeatedSegments
from pyramidions.nn.segments.upsampling import SegmentUpsampler as SegmentUpsampler
from pyramidions.nn.segments.upsampling import SmoothedSegments as SmoothedSegments

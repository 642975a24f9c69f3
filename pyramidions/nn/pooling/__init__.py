"""Poolers, one idea per file; importing this package fills the registry."""

from pyramidions.nn.pooling.delete_gate import DeleteGatePooler as DeleteGatePooler
from pyramidions.nn.pooling.markers import MarkersPooler as MarkersPooler
from pyramidions.nn.pooling.pooler import POOLING as POOLING
from pyramidions.nn.pooling.pooler import Pooled as Pooled
from pyramidions.nn.pooling.pooler import Pooler as Pooler
from pyramidions.nn.pooling.segments import SegmentsPooler as SegmentsPooler
from pyramidions.nn.pooling.topk import TopKPooler as TopKPooler
from pyramidions.nn.pooling.windows import AdaptiveMeanPooler as AdaptiveMeanPooler
from pyramidions.nn.pooling.windows import FunnelPooler as FunnelPooler
from pyramidions.nn.pooling.windows import MaxPooler as MaxPooler
from pyramidions.nn.pooling.windows import MeanPooler as MeanPooler

"""Poolers, one idea per file; importing this package fills the registry."""

from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.pooling.funnel import FunnelPooler
from pyramidions.nn.pooling.markers import MarkersPooler
from pyramidions.nn.pooling.max import MaxPooler
from pyramidions.nn.pooling.mean import MeanPooler
from pyramidions.nn.pooling.segments import SegmentsPooler
from pyramidions.nn.pooling.topk import TopKPooler

__all__ = [
    "POOLING",
    "FunnelPooler",
    "MarkersPooler",
    "MaxPooler",
    "MeanPooler",
    "Pooled",
    "Pooler",
    "SegmentsPooler",
    "TopKPooler",
]

"""Poolers, one per file; importing this package fills the registry."""

from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler, Upsampler
from pyramidions.nn.pooling.funnel import FunnelPooler, FunnelUpsampler
from pyramidions.nn.pooling.gumbel_topk import GumbelTopKPooler
from pyramidions.nn.pooling.hard_topk import HardTopKPooler
from pyramidions.nn.pooling.iterative_topk import IterativeTopKPooler
from pyramidions.nn.pooling.max import MaxPooler
from pyramidions.nn.pooling.mean import MeanPooler
from pyramidions.nn.pooling.soft_topk import SoftTopKPooler

__all__ = [
    "POOLING",
    "FunnelPooler",
    "FunnelUpsampler",
    "GumbelTopKPooler",
    "HardTopKPooler",
    "IterativeTopKPooler",
    "MaxPooler",
    "MeanPooler",
    "Pooled",
    "Pooler",
    "SoftTopKPooler",
    "Upsampler",
]

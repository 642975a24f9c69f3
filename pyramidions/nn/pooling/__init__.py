"""Poolers, one per file; importing this package fills the registry."""

from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.pooling.soft_topk import SoftTopKPooler

__all__ = ["POOLING", "Pooled", "Pooler", "SoftTopKPooler"]

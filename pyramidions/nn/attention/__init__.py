"""Attention kinds, one per file; importing this package fills the registry."""

from pyramidions.nn.attention.adaptive_span import AdaptiveSpanAttention
from pyramidions.nn.attention.bigbird import BigBirdAttention
from pyramidions.nn.attention.blockwise import BlockwiseAttention
from pyramidions.nn.attention.core import ATTENTION, CoreAttention, Feature, supporting
from pyramidions.nn.attention.efficient import EfficientAttention
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.attention.global_rows import GlobalRows
from pyramidions.nn.attention.hepos import HeposAttention
from pyramidions.nn.attention.linformer import LinformerAttention
from pyramidions.nn.attention.lsh import LSHAttention
from pyramidions.nn.attention.multihead import CrossAttention, SelfAttention
from pyramidions.nn.attention.relative import Distances, RelativeAttention
from pyramidions.nn.attention.segments import SegmentsAttention
from pyramidions.nn.attention.sinkhorn import SinkhornAttention
from pyramidions.nn.attention.sliding_window import SlidingWindowAttention
from pyramidions.nn.attention.strided import StridedAttention

__all__ = [
    "ATTENTION",
    "AdaptiveSpanAttention",
    "BigBirdAttention",
    "BlockwiseAttention",
    "CoreAttention",
    "CrossAttention",
    "Distances",
    "EfficientAttention",
    "Feature",
    "FullAttention",
    "GlobalRows",
    "HeposAttention",
    "LSHAttention",
    "LinformerAttention",
    "RelativeAttention",
    "SegmentsAttention",
    "SelfAttention",
    "SinkhornAttention",
    "SlidingWindowAttention",
    "StridedAttention",
    "supporting",
]

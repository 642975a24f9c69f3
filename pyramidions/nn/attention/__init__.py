"""Attention kinds, one per file; importing this package fills the registry."""

from pyramidions.nn.attention.blockwise import BlockwiseAttention
from pyramidions.nn.attention.core import ATTENTION, CoreAttention, MarkedAttention
from pyramidions.nn.attention.efficient import EfficientAttention
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.attention.global_rows import GlobalRows
from pyramidions.nn.attention.lsh import LSHAttention
from pyramidions.nn.attention.multihead import CrossAttention, SelfAttention
from pyramidions.nn.attention.sliding_window import SlidingWindowAttention

__all__ = [
    "ATTENTION",
    "BlockwiseAttention",
    "CoreAttention",
    "CrossAttention",
    "EfficientAttention",
    "FullAttention",
    "GlobalRows",
    "LSHAttention",
    "MarkedAttention",
    "SelfAttention",
    "SlidingWindowAttention",
]

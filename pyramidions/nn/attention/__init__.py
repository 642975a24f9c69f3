"""Attention kinds, one per file; importing this package fills the registry."""

from pyramidions.nn.attention.blockwise import BlockwiseAttention
from pyramidions.nn.attention.core import ATTENTION, CoreAttention
from pyramidions.nn.attention.efficient import EfficientAttention
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.attention.lsh import LSHAttention
from pyramidions.nn.attention.multihead import CrossAttention, SelfAttention

__all__ = [
    "ATTENTION",
    "BlockwiseAttention",
    "CoreAttention",
    "CrossAttention",
    "EfficientAttention",
    "FullAttention",
    "LSHAttention",
    "SelfAttention",
]

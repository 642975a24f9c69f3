"""Attention kinds, one per file; importing this package fills the registry."""

from pyramidions.nn.attention.adaptive_span import AdaptiveSpanAttention as AdaptiveSpanAttention
from pyramidions.nn.attention.bigbird import BigBirdAttention as BigBirdAttention
from pyramidions.nn.attention.block_global import BlockGlobalAttention as BlockGlobalAttention
from pyramidions.nn.attention.blockwise import BlockwiseAttention as BlockwiseAttention
from pyramidions.nn.attention.bucketed import BucketedAttention as BucketedAttention
from pyramidions.nn.attention.bucketed import DistanceBiases as DistanceBiases
from pyramidions.nn.attention.core import ATTENTION as ATTENTION
from pyramidions.nn.attention.core import CoreAttention as CoreAttention
from pyramidions.nn.attention.core import Feature as Feature
from pyramidions.nn.attention.core import supporting as supporting
from pyramidions.nn.attention.efficient import EfficientAttention as EfficientAttention
from pyramidions.nn.attention.full import FullAttention as FullAttention
from pyramidions.nn.attention.global_rows import GlobalRows as GlobalRows
from pyramidions.nn.attention.hepos import HeposAttention as HeposAttention
from pyramidions.nn.attention.linformer import LinformerAttention as LinformerAttention
from pyramidions.nn.attention.lsh import LSHAttention as LSHAttention
from pyramidions.nn.attention.multihead import CrossAttention as CrossAttention
from pyramidions.nn.attention.multihead import SelfAttention as SelfAttention
from pyramidions.nn.attention.pooled_blockwise import PooledBlockwiseAttention as PooledBlockwiseAttention
from pyramidions.nn.attention.relative import Distances as Distances
from pyramidions.nn.attention.relative import RelativeAttention as RelativeAttention
from pyramidions.nn.attention.segments import SegmentsAttention as SegmentsAttention
from pyramidions.nn.attention.sinkhorn import SinkhornAttention as SinkhornAttention
from pyramidions.nn.attention.sliding_window import SlidingWindowAttention as SlidingWindowAttention
from pyramidions.nn.attention.strided import StridedAttention as StridedAttention
from pyramidions.nn.attention.transient_global import TransientGlobalAttention as TransientGlobalAttention

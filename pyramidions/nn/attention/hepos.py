"""Head-wise positional strides: each head of a cross-attention reads its own part of the memory."""

from typing import ClassVar

import torch
from torch import Tensor

from pyramidions.base.arguments import Count
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.chunking import chunked
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.options import Probability
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, Memory


@ATTENTION.register("hepos")
class HeposAttention(CoreAttention):
    """Head h reads the positions i of the memory with (i - h) mod s = 0 (Huang et al. 2021, section 3).

    Any s neighbouring heads read all of it. Its keys and values are projected and kept only where a head reads them. A
    head for which there is nothing to read returns zeros.

    Between projected heads this is full attention: which positions a head's keys stand for, `keys_values` decides.

    Args:
        stride: s, a divisor of ``num_heads``.
    """

    supports = frozenset({Feature.OTHERS, Feature.WEIGHTS, Feature.STEPS_ALIKE})
    wide: ClassVar = {"stride": 1}
    narrow: ClassVar = {"stride": 2}

    def __init__(self, num_heads: int, stride: Count = 4, dropout: Probability = 0.0) -> None:
        super().__init__()
        if num_heads % stride:
            raise ValueError(f"`num_heads` ({num_heads}) must be divisible by the `stride` of hepos ({stride}).")
        self.stride = stride
        self.within = FullAttention(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        return self.within(q, k, v, context)

    def keys_values(self, projections: Projections, memory: Memory) -> tuple[Tensor, Tensor, Tensor | None]:
        x, padding_mask = memory.x, memory.padding_mask
        k, v = projections.strided_keys_values(x, self.stride)
        if padding_mask is None and x.size(1) % self.stride == 0:
            return k, v, None
        if padding_mask is None:
            padding_mask = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        # (B, K) -> (B, K/s, s) -> (B, s, K/s) -> (B, H, K/s)
        padding = chunked(padding_mask, self.stride, dim=1, value=True)
        padding = padding.transpose(1, 2).repeat(1, k.size(1) // self.stride, 1)
        # All keys of a head that has no real one are seen, because a softmax over nothing would be NaN: of values that
        # are zero it makes zero.
        v = v.masked_fill(padding[..., None], 0.0)
        blocked = padding & ~padding.all(dim=-1, keepdim=True)
        return k, v, as_bias(blocked, k).transpose(1, 2)

    def weights(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        return self.within.weights(q, k, context)

    def spread(self, weights: Tensor, padding_mask: Tensor) -> Tensor:
        stride = self.stride
        # (B, H, Lq, K/s) -> (B, H, Lq, K)
        over = weights.new_zeros(*weights.shape[:3], weights.size(3) * stride)
        for residue in range(stride):
            over[:, residue::stride, :, residue::stride] = weights[:, residue::stride]
        return over[..., : padding_mask.size(1)].masked_fill_(padding_mask[:, None, None], 0.0)

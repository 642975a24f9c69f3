"""Windows, and sums of blocks that every position sees, as in LongT5."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import CountOrZero
from pyramidions.nn.attention.bucketed import Buckets, DistanceBiases, Furthest, check_furthest
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.functional.attention import attended, joined
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.functional.tiles import Band, ByBlock, ByDistance, Dense
from pyramidions.nn.options import Probability, Window
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, Summaries


@ATTENTION.register("transient_global")
class TransientGlobalAttention(CoreAttention):
    """Attention to a window around each position, and to a summary of each block (Guo et al. 2022, section 3.1.2).

    The vectors of a block are added up and normalised, then projected to keys and values as all others are. Those
    behind the last whole block count in that one. Scores have a learned bias for each head and bucket of distances: of
    positions in the window, and of blocks.

    Args:
        window: positions on both sides together, half of them on each.
        block_size: positions of a block; 0 for windows alone (their local attention).
        buckets: of distances, in both directions together; see `DistanceBiases`.
        furthest: longer distances have the bucket of this one; above half of the buckets.
    """

    supports = frozenset({Feature.ITSELF})
    is_exact = False
    shared = ("biases", "block_biases")
    wide: ClassVar = {"window": 64, "block_size": 4}
    narrow: ClassVar = {"window": 4, "block_size": 2}

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        window: Window = 254,
        block_size: CountOrZero = 16,
        buckets: Buckets = 32,
        furthest: Furthest = 128,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        check_furthest(buckets, furthest)
        self.side = window // 2
        self.block_size = block_size
        self.dropout = dropout
        self.biases = DistanceBiases(num_heads, buckets, furthest)
        self.block_biases = DistanceBiases(num_heads, buckets, furthest) if block_size else None
        self.norm = nn.RMSNorm(embed_dim, eps=1e-6) if block_size else None

    def reading(self, x: Tensor, projections: Projections, context: LayerContext) -> LayerContext:
        if self.norm is None or x.size(1) < self.block_size:
            return context
        padding = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        padding = padding if context.padding_mask is None else context.padding_mask
        # (B, L), how many real positions come before; (B, 1), whole blocks
        places = (~padding).cumsum(dim=1) - 1
        whole = (places[:, -1:] + 1) // self.block_size
        blocks = torch.minimum(places // self.block_size, whole - 1).clamp(min=0)
        sums = x.new_zeros(len(x), x.size(1) // self.block_size, x.size(2))
        sums = sums.scatter_add(1, blocks[..., None].expand_as(x), x.masked_fill(padding[..., None], 0.0))
        absent = torch.arange(sums.size(1), device=x.device) >= whole
        summaries = Summaries(*projections.keys_values(self.norm(sums)), absent, blocks)
        return context._replace(summaries=summaries)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        reach = min(self.side, q.size(2))
        near = ByDistance(self.biases(torch.arange(-reach, reach + 1, device=q.device), False))
        attention = attended(q, k, v, Band(padding_of(k, context.padding_mask), reach), near, self.dropped)
        if context.summaries is not None and self.block_biases is not None:
            keys, values, absent, blocks = context.summaries
            count = absent.size(1)
            by_block = self.block_biases(torch.arange(1 - count, count, device=q.device), False)
            plan = Dense(count, ~absent[:, None, None])
            attention = joined(attention, attended(q, keys, values, plan, ByBlock(by_block, blocks), self.dropped))
        elif self.norm is not None and self.block_biases is not None and torch.is_grad_enabled():
            # The texts are shorter than a block. DDP needs gradients of all weights, though.
            parts = (self.norm, self.block_biases)
            unused = sum(weight.sum() for part in parts for weight in part.parameters())
            attention = attention._replace(mixed=attention.mixed + 0.0 * unused)
        return attention.mixed

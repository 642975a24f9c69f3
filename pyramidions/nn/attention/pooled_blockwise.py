"""Pooling-augmented blockwise attention: to a block, and then to averages over the whole document."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import Count, CountOrZero
from pyramidions.nn.attention.blockwise import BlockwiseAttention
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.options import Length, Probability
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("pooled_blockwise")
class PooledBlockwiseAttention(CoreAttention):
    """Blockwise attention, whose output attends to averages over the document (Xiong et al. 2022, BART-LS).

    As in their code, the second attention has projections of its own. Queries, keys and values are all projected from
    the output of the first one, keys and values are averaged over windows with zeros at padding, and both outputs are
    added. A window of padding alone is no key. Their code leaves out a last window of fewer than 9 positions where a
    batch has no padding to fill it; here it is always read, so that padding never changes a result.

    Args:
        block_size: positions in a block, M.
        window: positions whose keys and values are averaged.
        stride: positions from one window to the next.
        padding: zeros in front of the first position, fewer than ``window``.
        learned: weigh each position by a learned score, and divide by the sum of the weights (ours).
    """

    supports = frozenset({Feature.ITSELF})
    wide: ClassVar = {"block_size": 64}
    narrow: ClassVar = {"block_size": 4, "window": 3, "stride": 2, "padding": 1}

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        block_size: Length = 1024,
        window: Count = 18,
        stride: Count = 12,
        padding: CountOrZero = 9,
        learned: bool = False,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        if padding >= window:
            raise ValueError(f"`padding` must be below `window` ({window}), but is {padding}.")
        if stride > window:
            raise ValueError(f"`stride` must be at most `window` ({window}), but is {stride}.")
        self.window, self.stride, self.padding = window, stride, padding
        self.within_blocks = BlockwiseAttention(block_size, dropout)
        self.projections = DenseProjections(embed_dim, num_heads)
        self.to_averages = FullAttention(dropout)
        self.scorer = nn.Linear(embed_dim, 1) if learned else None

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        return self.within_blocks(q, k, v, context)

    def augmented(self, output: Tensor, context: LayerContext) -> Tensor:
        q, k, v = self.projections(output)
        hidden = padding_of(k, context.padding_mask)
        k, v = (x.masked_fill(hidden[:, None, :, None], 0.0) for x in (k, v))
        # (B, L) -> (B, 1, L) -> (B, 1, K), what of each window counts
        weights = (~hidden)[:, None].to(output.dtype)
        if self.scorer is not None:
            weights = weights * self.scorer(output).sigmoid().mT
            k, v = (x * weights[..., None] for x in (k, v))
        total = self._averages(weights)
        # (B, H, L, E) -> (B, D, L) -> (B, D, K) -> (B, H, K, E), contiguous, as fused kernels of attention want it
        k, v = (self._averages(x.mT.flatten(1, 2)).unflatten(1, (x.size(1), -1)).mT.contiguous() for x in (k, v))
        if self.scorer is not None:
            k, v = (x / total[..., None].clamp(min=torch.finfo(x.dtype).tiny) for x in (k, v))
        mask = None if context.padding_mask is None else total.squeeze(1) == 0
        return output + self.projections.output(self.to_averages(q, k, v, LayerContext(mask)))

    def _averages(self, x: Tensor) -> Tensor:
        """Average windows, of which each position is in one at least: (B, D, L) -> (B, D, K)."""
        count = -(-(x.size(2) + self.padding) // self.stride)
        missing = (count - 1) * self.stride + self.window - self.padding - x.size(2)
        return F.avg_pool1d(F.pad(x, (self.padding, missing)), self.window, self.stride)

"""Pooling of windows of fixed length."""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.base.arguments import CountOrZero
from pyramidions.nn.block_layout import BlockLayout
from pyramidions.nn.functional.chunking import chunked
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.pooling.pooler import POOLING, Pooled, WindowPooler
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.nn.sublayer import LayerContext, Memory


def window_mask(padding_mask: Tensor, window: int) -> Tensor:
    """Return which windows hold no real position: (B, L) -> (B, L/W)."""
    return chunked(padding_mask, window, dim=1, value=True).all(dim=-1)


def window_mean(x: Tensor, padding_mask: Tensor, window: int) -> Tensor:
    """Return the mean of the real positions of each window, zero where there is none: (B, L, D) -> (B, L/W, D)."""
    real = chunked(~padding_mask, window, dim=1, value=False)[..., None]
    # (B, L, D) -> (B, L/W, W, D)
    windows = chunked(x, window, dim=1).masked_fill(~real, 0.0)
    return windows.sum(dim=2) / real.sum(dim=2).clamp(min=1).to(x.dtype)


def window_max(x: Tensor, padding_mask: Tensor, window: int) -> Tensor:
    """Return the largest real value of each window, zero where there is none: (B, L, D) -> (B, L/W, D)."""
    blocked = chunked(padding_mask, window, dim=1, value=True)[..., None]
    # (B, L, D) -> (B, L/W, W, D)
    windows = chunked(x, window, dim=1).masked_fill(blocked, -torch.inf)
    return windows.amax(dim=2).masked_fill(blocked.all(dim=2), 0.0)


@POOLING.register("mean")
class MeanPooler(WindowPooler):
    """Hands on the mean of each window of positions (Pietruszka et al. 2022, table 4)."""

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, padding_mask = sequence.x, sequence.padding_mask
        mask = window_mask(padding_mask, self.window)
        sources = torch.arange(mask.size(1) * self.window, device=x.device).view(1, -1, self.window)
        sources = sources.clamp(max=x.size(1) - 1).expand(x.size(0), -1, -1)
        inside = torch.arange(mask.size(1) * self.window, device=x.device).view(1, -1, self.window) < x.size(1)
        # (B, K, G)
        real = ~padding_mask.gather(1, sources.flatten(1)).view(sources.shape) & inside
        weights = real.to(x.dtype) / real.sum(dim=-1, keepdim=True).clamp(min=1).to(x.dtype)
        return Pooled(window_mean(x, padding_mask, self.window), mask, sources, weights)


@POOLING.register("max")
class MaxPooler(WindowPooler):
    """Hands on the largest values of each window of positions (Pietruszka et al. 2022, table 4).

    It has no provenance: each dimension of a pooled vector comes from a position of its own.
    """

    has_provenance = False

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, padding_mask = sequence.x, sequence.padding_mask
        return Pooled(window_max(x, padding_mask, self.window), window_mask(padding_mask, self.window))


_LEAST = 1e-5  # a score, so that no window is without weight


@POOLING.register("adaptive_mean")
class AdaptiveMeanPooler(WindowPooler):
    """Hands on a weighted mean of each window of positions (Pang et al. 2023, AdaPool).

    The weight of a position is its share of the scores in the window: a softmax of their logarithms.

    Args:
        overlap: further positions of a window, with which the next one begins.
    """

    takes_scorer = True

    def __init__(self, window: int, scorer: Scorer, overlap: CountOrZero = 0) -> None:
        super().__init__(window)
        self.overlap, self.width = overlap, window + overlap
        self.scorer = scorer

    def kept(self, length: int) -> int:
        # Positions that one window reads at its end begin no other.
        return super().kept(max(length - self.overlap, min(length, 1)))

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, padding_mask = sequence.x, sequence.padding_mask
        length = x.size(1)
        missing = (self.kept(length) - 1) * self.window + self.width - length
        scores = self.scorer(sequence, context).clamp(min=_LEAST).masked_fill(padding_mask, 0.0)
        # (B, L) -> (B, K, G)
        scores = F.pad(scores, (0, missing)).unfold(1, self.width, self.window)
        # All windows but the first begin with what the one before has read.
        padding = torch.cat([scores[:, :1].sum(dim=-1), scores[:, 1:, self.overlap :].sum(dim=-1)], dim=1) == 0
        scores = scores.masked_fill(padding[..., None], 0.0)
        weights = scores / scores.sum(dim=-1, keepdim=True).clamp(min=_LEAST)
        sources = torch.arange(length + missing, device=x.device).clamp(max=length - 1)
        sources = sources.unfold(0, self.width, self.window).expand(len(x), -1, -1)
        # (B, L, D) -> (B, K, D, G); half precision may not hold the sums of a gradient
        members = full_precision(x).masked_fill(padding_mask[..., None], 0.0)
        members = F.pad(members, (0, 0, 0, missing)).unfold(1, self.width, self.window)
        with torch.autocast(x.device.type, enabled=False):
            pooled = (members @ weights[..., None].to(members.dtype)).squeeze(-1).to(x.dtype)
        return Pooled(pooled, padding, sources, weights)


@POOLING.register("funnel")
class FunnelPooler(WindowPooler):
    """Strided mean of the queries, and the layer that attends with them (Dai et al. 2020, section 2.2).

    It has no provenance: every pooled vector has read all vectors of its block.

    Args:
        layer: its "cross_attention" comes first, from pooled queries to unpooled keys and values.
        confined_to: attention stays within blocks of this many positions, divisible by ``window``; None for no blocks.
    """

    upsampling = "repeat"
    has_provenance = False
    takes_layer = True

    def __init__(self, window: int, layer: Layer, confined_to: int | None = None) -> None:
        super().__init__(window)
        if confined_to is not None and confined_to % window:
            raise ValueError(
                f"The block size of funnel pooling ({confined_to}) must be divisible by its window ({window})."
            )
        self.layer = layer
        self.confined_to = confined_to

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        layout = BlockLayout(sequence.padding_mask, self.confined_to, sequence.lengths)
        blocks = layout.pack(sequence.x)
        # Keys and values are normalised as the queries are.
        memory = Memory(cast(Sublayer, self.layer.sublayers["cross_attention"]).entering(blocks), layout.attention_mask)
        # (N, M, D) -> (N, M/W, D)
        queries = window_mean(blocks, layout.padding_mask, self.window)
        padding_mask = window_mask(layout.padding_mask, self.window)
        y = self.layer(queries, LayerContext(padding_mask, (memory,)))
        mask = window_mask(sequence.padding_mask, self.window)
        confined_to = None if self.confined_to is None else self.confined_to // self.window
        lengths = None if sequence.lengths is None else [self.kept(length) for length in sequence.lengths]
        return Pooled(BlockLayout(mask, confined_to, lengths).unpack(y), mask)

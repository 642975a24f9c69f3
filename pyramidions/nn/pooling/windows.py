"""Pooling of windows of fixed length."""

import torch

from pyramidions.nn.functional.windows import window_mask, window_max, window_mean
from pyramidions.nn.pooling.core import POOLING, Pooled, WindowPooler
from pyramidions.nn.sequence import PoolingContext, Sequence


@POOLING.register("mean")
class MeanPooler(WindowPooler):
    """Hands on the mean of each window of positions (Pietruszka et al. 2022, table 4).

    Args:
        window: positions in a window, the configured length over the configured k, whatever a batch's length.
    """

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

    Args:
        window: positions in a window, the configured length over the configured k, whatever a batch's length.
    """

    has_provenance = False

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, padding_mask = sequence.x, sequence.padding_mask
        return Pooled(window_max(x, padding_mask, self.window), window_mask(padding_mask, self.window))

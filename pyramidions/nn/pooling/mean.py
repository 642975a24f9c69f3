"""Mean pooling: the mean of each window."""

import torch

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.functional.windows import window_mask, window_mean
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.sequence import Sequence


@POOLING.register("mean")
class MeanPooler(Pooler):
    """Hands on the mean of each window of positions (Pietruszka et al. 2022, table 4).

    Args:
        window: positions in a window, the configured length over the configured k, whatever a batch's length.
    """

    takes_window = True

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

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

    def kept(self, length: int) -> int:
        return -(-length // self.window)

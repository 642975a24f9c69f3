"""Pooling of windows that overlap, with a learned weight for each position."""

import torch
import torch.nn.functional as F

from pyramidions.base.arguments import CountOrZero
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.pooling.core import POOLING, Pooled, WindowPooler
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence

_LEAST = 1e-5  # a score, so that no window is without weight


@POOLING.register("adaptive_mean")
class AdaptiveMeanPooler(WindowPooler):
    """Hands on a weighted mean of each window of positions (Pang et al. 2023, AdaPool).

    The weight of a position is its share of the scores in the window: a softmax of their logarithms.

    Args:
        window: positions from one window to the next, the configured length over the configured k, whatever a batch's
            length.
        scorer: rates positions, above 0.
        overlap: further positions of a window, with which the next one begins.
    """

    takes_scorer = True

    def __init__(self, window: int, scorer: Scorer, overlap: CountOrZero = 0) -> None:
        super().__init__(window)
        self.width = window + overlap
        self.scorer = scorer

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, padding_mask = sequence.x, sequence.padding_mask
        length = x.size(1)
        missing = (self.kept(length) - 1) * self.window + self.width - length
        scores = self.scorer(sequence, context).clamp(min=_LEAST).masked_fill(padding_mask, 0.0)
        # (B, L) -> (B, K, G)
        scores = F.pad(scores, (0, missing)).unfold(1, self.width, self.window)
        weights = scores / scores.sum(dim=-1, keepdim=True).clamp(min=_LEAST)
        sources = torch.arange(length + missing, device=x.device).clamp(max=length - 1)
        sources = sources.unfold(0, self.width, self.window).expand(len(x), -1, -1)
        # (B, L, D) -> (B, K, D, G); half precision may not hold the sums of a gradient
        members = full_precision(x).masked_fill(padding_mask[..., None], 0.0)
        members = F.pad(members, (0, 0, 0, missing)).unfold(1, self.width, self.window)
        with torch.autocast(x.device.type, enabled=False):
            pooled = (members @ weights[..., None].to(members.dtype)).squeeze(-1).to(x.dtype)
        return Pooled(pooled, (scores == 0).all(dim=-1), sources, weights)

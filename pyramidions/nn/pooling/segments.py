"""Pooling of segments whose boundaries are learned."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Count
from pyramidions.base.device import has_values
from pyramidions.nn.boundaries import GumbelBoundaries, HiddenStates, Segmentation
from pyramidions.nn.functional.segment_means import means_of_segments
from pyramidions.nn.options import Positive, Within
from pyramidions.nn.pooling.pooler import POOLING, Pooled, Pooler
from pyramidions.nn.regularised import Regularised
from pyramidions.nn.sequence import PoolingContext, Sequence


@POOLING.register("segments")
class SegmentsPooler(Regularised, Pooler):
    """Hands on the mean of each segment; where segments end is learned.

    This is the dynamic pooling of a language model (Nawrot et al. 2023, sections 3.1.1 and 3.2) in an encoder. A
    predictor gives each position the probability that a segment ends there. Training samples boundaries. Evaluation
    takes the n most probable positions, where n is the sum of the probabilities: rounding would leave next to none
    while a prior keeps them all small. The end of the text always ends a segment, so no position is lost. If there are
    more than k segments, only the most probable boundaries are kept. Training adds the binomial prior to the loss, in
    nats per position.

    The text decides how many vectors there are, so that the host waits for a GPU once. Padding must come after the
    text.

    Args:
        prior: share of positions that end a segment; None for one in ``window``.
        temperature: of the sigmoid that gives boundaries a gradient.
    """

    takes_window = True
    most: ClassVar = {"prior": 1 - 1e-6}

    def __init__(
        self,
        k: Count,
        window: int,
        embed_dim: int,
        ffn_embed_dim: int,
        prior: Within | None = None,
        temperature: Positive = 0.5,
    ) -> None:
        super().__init__()
        self.k, self.window = k, window
        # A window of 1 pools nothing; a prior of 1 would be none.
        prior = 1 / max(window, 2) if prior is None else prior
        self.boundaries = GumbelBoundaries(embed_dim, ffn_embed_dim, prior, temperature)
        # Training begins with as many boundaries as the prior asks for.
        nn.init.constant_(self.boundaries.predictor.fc2.bias, math.log(prior / (1 - prior)))

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, padding_mask = sequence.x, sequence.padding_mask
        drawn = self.boundaries(HiddenStates(x, padding_mask=padding_mask))
        if self.training:
            self._loss = (self.boundaries.loss(drawn) / drawn.lengths.clamp(min=1)).mean()
        boundaries = self._kept_boundaries(drawn, padding_mask)
        starts, sizes = _spans(boundaries, self.k)
        # The host waits once, for all that it must know.
        *lengths, longest = self._known(sizes)
        most = max([1, *lengths])
        sources, weights = _members(starts[:, :most], sizes[:, :most], longest, x.size(1))
        padding_mask = sizes[:, :most] == 0
        return Pooled(means_of_segments(x, boundaries, most), padding_mask, sources, weights.to(x.dtype), lengths)

    def _kept_boundaries(self, drawn: Segmentation, padding_mask: Tensor) -> Tensor:
        """Return the end of the text, and the k - 1 other boundaries with the greatest logits at most: (B, L)."""
        assert drawn.logits is not None
        real = ~padding_mask
        last = real & (real.cumsum(dim=1) == real.sum(dim=1, keepdim=True))
        marked = (drawn.boundaries != 0) | last if self.training else real
        ranked = drawn.logits.detach().masked_fill(~marked, -math.inf).masked_fill(last, math.inf)
        best = ranked.topk(min(self.k, ranked.size(1)), dim=1).indices
        most = marked if self.training else drawn.logits.float().sigmoid().masked_fill(~real, 0.0)
        taken = torch.arange(best.size(1), device=best.device) < most.sum(dim=1, keepdim=True).round()
        kept = torch.zeros_like(marked).scatter(1, best, taken)
        # A boundary that is dropped learns nothing, and a position that was none does.
        learns = (drawn.boundaries - drawn.boundaries.detach()).masked_fill(marked & ~kept, 0.0)
        return torch.where(last, 1.0, kept + learns)

    def _known(self, sizes: Tensor) -> list[int]:
        """Return how many segments each document has, and the size of the longest: (B, K) -> B + 1 integers."""
        if not has_values(sizes):
            # the most there may be, all of one size
            return [sizes.size(1)] * len(sizes) + [self.window]
        return torch.cat([(sizes > 0).sum(dim=1), sizes.amax()[None]]).tolist()


def _spans(boundaries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return where the segments of each row start, and their sizes: (B, L) -> (B, K) twice.

    K is ``k``, or L if that is less. After a row's last segment sizes are 0.
    """
    marked = boundaries != 0
    # Ends come before all other positions, in their order.
    ends = (~marked).byte().argsort(dim=1, stable=True)[:, :k]
    starts = torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1] + 1], dim=1)
    return starts, torch.where(marked.gather(1, ends), ends - starts + 1, 0)


def _members(starts: Tensor, sizes: Tensor, longest: int, length: int) -> tuple[Tensor, Tensor]:
    """Return which positions segments (B, K) are made of, and how much of each: (B, K, G) twice, G the ``longest``."""
    place = torch.arange(max(1, longest), device=starts.device)
    # (B, K) -> (B, K, G)
    sources = (starts[..., None] + place).clamp(max=length - 1)
    return sources, (place < sizes[..., None]) / sizes.clamp(min=1)[..., None]

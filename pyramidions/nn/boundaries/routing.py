"""Boundaries where the text turns: a position is unlike the one before it."""

from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import Range
from pyramidions.nn.boundaries.segmentation import BOUNDARIES, Boundaries, HiddenStates, Segmentation, without_padding
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.options import Positive

# A logit of a probability of 0 or 1 would be infinite.
_SMALLEST = 1e-6


@BOUNDARIES.register("routing")
class RoutingBoundaries(Boundaries):
    """Boundaries where a position is unlike the one before it (Hwang et al. 2025, section 2.2).

    The probability of a boundary is (1 - cos(q, k)) / 2, where q is a projection of the vector before and k one of the
    position's own; it is 1 at the first position. A boundary is where it is above 1/2. The probability learns through
    the upsampling `smoothing`, and from the ratio loss, which asks for one boundary in ``factor`` positions.

    Args:
        factor: positions of a segment, N.
        weight: of the ratio loss.
    """

    learns_from_upsampling = True
    marks_segments = True

    def __init__(
        self, embed_dim: int, factor: Annotated[float, Range(1, open=True)] = 6.0, weight: Positive = 0.03
    ) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.eye(embed_dim))
        self.key = nn.Parameter(torch.eye(embed_dim))
        self.factor = factor
        self.weight = weight

    def forward(self, states: HiddenStates) -> Segmentation:
        # An evaluation in half precision keeps these weights in float32.
        x, before, padding_mask = states.x.to(self.query.dtype), states.before, states.padding_mask
        # (B, L, D) -> (B, L - 1, D), or all with the one before
        earlier = x[:, :-1] if before is None else torch.cat([before[:, None], x[:, :-1]], dim=1)
        first = x.size(1) - earlier.size(1)
        q, k = F.linear(earlier, self.query), F.linear(x[:, first:], self.key)
        likeness = F.cosine_similarity(full_precision(q), full_precision(k), dim=2)
        # (B, L - 1) -> (B, L)
        logits = F.pad((1 - likeness) / 2, (first, 0), value=1.0).logit(_SMALLEST)
        return Segmentation(without_padding((logits > 0).to(logits.dtype), padding_mask), logits, padding_mask)

    def loss(
        self, segmentation: Segmentation, targets: Tensor | None = None, known: Tensor | None = None
    ) -> Tensor | None:
        assert segmentation.probabilities is not None
        lengths = segmentation.lengths
        probabilities = without_padding(segmentation.probabilities, segmentation.padding_mask)
        marked, expected = (sums / lengths.clamp(min=1) for sums in (segmentation.closed, probabilities.sum(dim=1)))
        ratio = marked * expected + (1 - marked) * (1 - expected) / (self.factor - 1)
        return self.weight * self.factor * ratio * lengths

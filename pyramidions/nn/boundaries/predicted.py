"""Boundaries that are predicted, and how the predictor learns."""

from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Binomial

from pyramidions.base.arguments import Count, Range
from pyramidions.nn.boundaries.segmentation import BOUNDARIES, Boundaries, HiddenStates, Segmentation, without_padding
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.options import Positive, Within


def spikes(x: Tensor, window: int) -> Tensor:
    """Return which numbers are above each of the ``window`` before: (B, L) -> (B, L).

    An equal one is not above. The first number, which none precede, is a spike.
    """
    is_spike = torch.ones_like(x, dtype=torch.bool)
    for back in range(1, window + 1):
        is_spike[:, back:] &= x[:, back:] > x[:, :-back]
    return is_spike


class BoundaryPredictor(nn.Module):
    """Two linear layers with a GELU in between (Nawrot et al. 2023, section 3.1)."""

    def __init__(self, embed_dim: int, ffn_embed_dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim)
        self.fc2 = nn.Linear(ffn_embed_dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of boundaries, in float32 or better: (B, L, D) -> (B, L)."""
        return full_precision(self.fc2(F.gelu(self.fc1(x.to(self.fc1.weight.dtype)))).squeeze(2))


@BOUNDARIES.register("gumbel")
class GumbelBoundaries(Boundaries):
    """Boundaries drawn with their gradients, by the Gumbel-sigmoid (Nawrot et al. 2023, sections 3.1.1 and 3.3).

    With probability p and uniform u, y = sigmoid((logit p + logit u) / temperature). A boundary is where y is above
    0.5; its gradient is that of y (straight-through).

    Args:
        prior: share of positions that are boundaries, by a binomial distribution, which keeps them few.
        temperature: of the sigmoid.
        evaluation: "round" for boundaries where p is above 0.5, "sample" to draw them as in training.
    """

    learns_from_segments = True
    marks_segments = True

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        prior: Within = 0.2,
        temperature: Positive = 0.5,
        evaluation: Literal["round", "sample"] = "round",
    ) -> None:
        super().__init__()
        self.predictor = BoundaryPredictor(embed_dim, ffn_embed_dim)
        self.prior = prior
        self.temperature = temperature
        self.evaluation = evaluation

    def forward(self, states: HiddenStates) -> Segmentation:
        logits = self.predictor(states.x)
        soft = logits
        if self.training or self.evaluation == "sample":
            tiny = torch.finfo(logits.dtype).eps
            drawn = torch.rand_like(logits).clamp(tiny, 1 - tiny)
            soft = (logits + drawn.logit()) / self.temperature
        gradient = soft.sigmoid()
        # What is added is exactly zero, so that boundaries are exactly 0 or 1.
        boundaries = (soft > 0).to(logits.dtype) + (gradient - gradient.detach())
        return Segmentation(without_padding(boundaries, states.padding_mask), logits, states.padding_mask)

    def loss(
        self, segmentation: Segmentation, targets: Tensor | None = None, known: Tensor | None = None
    ) -> Tensor | None:
        prior = torch.full_like(segmentation.boundaries[:, 0], self.prior)
        closed = segmentation.boundaries.sum(dim=1)
        return -Binomial(segmentation.lengths.to(closed.dtype), prior, validate_args=False).log_prob(closed)


class SupervisedBoundaries(Boundaries):
    """Boundaries where their probability is above a threshold; targets teach the predictor.

    Args:
        loss: "logits" for the cross-entropy of the probabilities. "twice" for that of the sigmoid of the probabilities,
            as the code of Nawrot et al. 2023 has it: a probability above 0.5 then takes a target that is a boundary
            in more than 62% of such places.
        threshold: of the probability.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        loss: Literal["logits", "twice"] = "logits",
        threshold: Within = 0.5,
    ) -> None:
        super().__init__()
        self.predictor = BoundaryPredictor(embed_dim, ffn_embed_dim)
        self.twice = loss == "twice"
        self.threshold = threshold

    def forward(self, states: HiddenStates) -> Segmentation:
        logits = self.predictor(states.x)
        boundaries = (logits.sigmoid() > self.threshold).to(logits.dtype)
        return Segmentation(without_padding(boundaries, states.padding_mask), logits, states.padding_mask)

    def targets(self, logits: Tensor, marked: Tensor | None = None) -> Tensor | None:
        return marked

    def loss(
        self, segmentation: Segmentation, targets: Tensor | None = None, known: Tensor | None = None
    ) -> Tensor | None:
        logits = segmentation.logits
        if logits is None or targets is None:
            raise ValueError(f"{type(self).__name__} learns from targets, but there are none.")
        logits = logits.sigmoid() if self.twice else logits
        loss = F.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none")
        for left_out in (segmentation.padding_mask, None if known is None else ~known):
            loss = loss if left_out is None else loss.masked_fill(left_out, 0.0)
        return loss.sum(dim=1)


@BOUNDARIES.register("unigram")
class UnigramBoundaries(SupervisedBoundaries):
    """Predicts where the pieces of a Unigram tokenizer (Kudo 2018) end (Nawrot et al. 2023, section 3.1.2)."""


@BOUNDARIES.register("entropy")
class EntropyBoundaries(SupervisedBoundaries):
    """Predicts where the language model becomes less certain of what follows (Nawrot et al. 2023, section 3.1.3).

    Args:
        window: predictions before it that must all have been more certain.
        loss: as in `SupervisedBoundaries`.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        window: Count = 2,
        loss: Literal["logits", "twice"] = "logits",
        threshold: Within = 0.5,
    ) -> None:
        super().__init__(embed_dim, ffn_embed_dim, loss, threshold)
        self.window = window

    @torch.no_grad()
    def targets(self, logits: Tensor, marked: Tensor | None = None) -> Tensor:
        """Return where the entropy of a prediction exceeds that of the earlier ones: (B, L, V) -> (B, L)."""
        shares = logits.float().log_softmax(dim=-1)
        return spikes(-(shares.exp() * shares).sum(dim=-1), self.window)


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

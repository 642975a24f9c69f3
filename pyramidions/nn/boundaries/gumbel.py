"""Boundaries that are learned from the loss of the language model."""

from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Binomial

from pyramidions.nn.boundaries.core import BOUNDARIES, Boundaries, Segmentation, without_padding
from pyramidions.nn.boundaries.predictor import BoundaryPredictor
from pyramidions.nn.options import Positive, Within


@BOUNDARIES.register("gumbel")
class GumbelBoundaries(Boundaries):
    """Boundaries drawn with their gradients, by the Gumbel-sigmoid (Nawrot et al. 2023, sections 3.1.1 and 3.3).

    With probability p and uniform u, y = sigmoid((logit p + logit u) / temperature). A boundary is where y is above
    0.5; its gradient is that of y (straight-through).

    Args:
        embed_dim: D.
        ffn_embed_dim: width of the predictor.
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

    def forward(
        self, x: Tensor, tokens: Tensor | None, padding_mask: Tensor | None = None, start: int | Tensor = 0
    ) -> Segmentation:
        logits = self.predictor(x)
        soft = logits
        if self.training or self.evaluation == "sample":
            tiny = torch.finfo(logits.dtype).eps
            drawn = torch.rand_like(logits).clamp(tiny, 1 - tiny)
            soft = (logits + drawn.logit()) / self.temperature
        gradient = soft.sigmoid()
        # What is added is exactly zero, so that boundaries are exactly 0 or 1.
        boundaries = (soft > 0).to(logits.dtype) + (gradient - gradient.detach())
        return Segmentation(without_padding(boundaries, padding_mask), logits, padding_mask)

    def loss(
        self, segmentation: Segmentation, targets: Tensor | None = None, known: Tensor | None = None
    ) -> Tensor | None:
        prior = torch.full_like(segmentation.boundaries[:, 0], self.prior)
        closed = segmentation.boundaries.sum(dim=1)
        return -Binomial(segmentation.lengths.to(closed.dtype), prior, validate_args=False).log_prob(closed)

"""Boundaries that are learned from given ones."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.boundaries.core import Boundaries, Segmentation, without_padding
from pyramidions.nn.boundaries.predictor import BoundaryPredictor
from pyramidions.nn.options import Within


class SupervisedBoundaries(Boundaries):
    """Boundaries where their probability is above a threshold; targets teach the predictor.

    Args:
        embed_dim: D.
        ffn_embed_dim: width of the predictor.
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

    def forward(
        self, x: Tensor, tokens: Tensor | None, padding_mask: Tensor | None = None, start: int | Tensor = 0
    ) -> Segmentation:
        logits = self.predictor(x)
        boundaries = (logits.sigmoid() > self.threshold).to(logits.dtype)
        return Segmentation(without_padding(boundaries, padding_mask), logits, padding_mask)

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

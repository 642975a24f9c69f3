"""Boundaries where the next token is hard to predict."""

from typing import Literal

import torch
from torch import Tensor

from pyramidions.base.arguments import Count
from pyramidions.nn.boundaries.core import BOUNDARIES
from pyramidions.nn.boundaries.supervised import SupervisedBoundaries
from pyramidions.nn.functional.spikes import spikes
from pyramidions.nn.options import Within


@BOUNDARIES.register("entropy")
class EntropyBoundaries(SupervisedBoundaries):
    """Predicts where the language model becomes less certain of what follows (Nawrot et al. 2023, section 3.1.3).

    Args:
        embed_dim: D.
        ffn_embed_dim: width of the predictor.
        window: predictions before, each of which must have been more certain.
        loss: as in `SupervisedBoundaries`.
        threshold: as there.
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
        """Return where the entropy of a prediction is above that of those before: (B, L, V) -> (B, L)."""
        shares = logits.float().log_softmax(dim=-1)
        return spikes(-(shares.exp() * shares).sum(dim=-1), self.window)

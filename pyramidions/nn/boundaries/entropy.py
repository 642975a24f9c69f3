"""Boundaries where the next token is hard to predict."""

from typing import Literal

import torch
from torch import Tensor

from pyramidions.nn.boundaries.core import BOUNDARIES
from pyramidions.nn.boundaries.supervised import SupervisedBoundaries
from pyramidions.nn.functional.spikes import spikes


@BOUNDARIES.register("entropy")
class EntropyBoundaries(SupervisedBoundaries):
    """Predicts where the language model becomes less certain of what follows (Nawrot et al. 2023, section 3.1.3).

    Args:
        embed_dim: D.
        ffn_embed_dim: width of the predictor.
        window: predictions before, each of which must have been more certain.
        loss: as in `SupervisedBoundaries`.
        threshold: as there.

    Raises:
        ValueError: a window below 1, or as there.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        window: int = 2,
        loss: Literal["logits", "twice"] = "logits",
        threshold: float = 0.5,
    ) -> None:
        super().__init__(embed_dim, ffn_embed_dim, loss, threshold)
        if window < 1:
            raise ValueError(f"`window` must be at least 1, but is {window}.")
        self.window = window

    @torch.no_grad()
    def targets(self, logits: Tensor, marked: Tensor | None = None) -> Tensor:
        """Return where the entropy of a prediction is above that of those before: (B, L, V) -> (B, L)."""
        shares = logits.float().log_softmax(dim=-1)
        return spikes(-(shares.exp() * shares).sum(dim=-1), self.window)

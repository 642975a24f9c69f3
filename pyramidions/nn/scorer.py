"""Scorers: how useful each representation is for what comes after."""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.registry import Registry


class Scorer(nn.Module, ABC):
    """Rates representations."""

    @abstractmethod
    def forward(self, x: Tensor, padding_mask: Tensor) -> Tensor:
        """Return a finite score, in float32 at least, for each vector of ``x``: (B, L, D) -> (B, L).

        ``padding_mask`` (B, L) is True at padding, whose scores mean nothing.
        """


SCORER: Registry[Scorer] = Registry("scorer")


@SCORER.register("linear")
class LinearScorer(Scorer):
    """sigmoid(linear(x)) + 1e-5, as the authors' code scores (Pietruszka et al. 2022, equation (1)).

    Args:
        embed_dim: D.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, padding_mask: Tensor) -> Tensor:
        # In float32 under mixed precision too: the tournament tells scores apart that half precision merges.
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        with torch.autocast(x.device.type, enabled=False):
            logits = F.linear(x.to(dtype), self.linear.weight.to(dtype), self.linear.bias.to(dtype))
        # (B, L, 1) -> (B, L)
        return torch.sigmoid(logits).squeeze(-1) + 1e-5

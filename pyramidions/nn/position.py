"""Positions: what tells a model where in the document a token stands."""

import math

import torch
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """Sinusoidal position embeddings (Vaswani et al. 2017, section 3.5), sines first, then cosines.

    Args:
        embed_dim: D, even.
        first: the number of the first position; fairseq counts from 2.

    Raises:
        ValueError: an odd ``embed_dim``.
    """

    table: Tensor

    def __init__(self, embed_dim: int, first: int = 2) -> None:
        super().__init__()
        if embed_dim % 2 or embed_dim < 4:
            raise ValueError(f"`embed_dim` must be even and at least 4, but is {embed_dim}.")
        self.embed_dim = embed_dim
        self.first = first
        self.register_buffer("table", self._rows(1024), persistent=False)

    def _rows(self, count: int) -> Tensor:
        half = self.embed_dim // 2
        frequency = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / (half - 1)))
        angle = torch.arange(self.first, self.first + count, dtype=torch.float)[:, None] * frequency
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    def forward(self, position: Tensor, length: int) -> Tensor:
        """Return the embeddings of ``position`` (...), counted from 0 and all below ``length``: (..., D)."""
        if length > self.table.size(0):
            self.table = self._rows(max(length, 2 * self.table.size(0))).to(self.table)
        return nn.functional.embedding(position, self.table)

"""Learned positions."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from pyramidions.nn.positions.core import POSITIONS, Positions


@POSITIONS.register("learned")
class LearnedPositions(Positions):
    """One trained embedding per position (Gehring et al. 2017, section 3.1), as BART and LED have them.

    Args:
        embed_dim: D.
        max_length: N, positions of the longest text.
        length: rows of the table; None for as many as the longest text has. A model that states it can read other
            lengths, up to this one, with the same weights.

    Raises:
        ValueError: fewer rows than the longest text has positions.
    """

    def __init__(self, embed_dim: int, max_length: int, length: int | None = None) -> None:
        super().__init__()
        rows = max_length if length is None else length
        if rows < max_length:
            raise ValueError(
                f"`length` of learned positions ({rows}) must be at least the longest text ({max_length})."
            )
        self.weight = nn.Parameter(nn.init.normal_(torch.empty(rows, embed_dim), std=embed_dim**-0.5))

    def forward(self, position: Tensor, length: int) -> Tensor:
        rows = self.weight.size(0)
        if length > rows:
            raise ValueError(f"A text must have at most {rows} tokens, one per learned position, but has {length}.")
        return embedding(position, self.weight).float()

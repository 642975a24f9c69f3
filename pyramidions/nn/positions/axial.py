"""Axial positions."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from pyramidions.nn.positions.core import POSITIONS, Positions


@POSITIONS.register("axial")
class AxialPositions(Positions):
    """Two short trained tables in place of a long one, as Reformer has them (Kitaev et al. 2020, public code).

    Positions are the cells of a grid of N1 rows and N2 columns. Position i is the embedding of row i // N2 beside that
    of column i mod N2, so that N1 x D1 + N2 x D2 parameters tell N1 x N2 positions apart.

    Args:
        embed_dim: D.
        max_length: N, positions of the longest text.
        shape: [N1, N2], a grid of at least N cells; None for the smallest with as many rows as columns.
        dims: [D1, D2], widths of the two tables, which sum to D; None for a quarter of D for the rows.

    Raises:
        ValueError: no two positive numbers, a grid of fewer than N cells, or widths with another sum.
    """

    def __init__(
        self, embed_dim: int, max_length: int, shape: list[int] | None = None, dims: list[int] | None = None
    ) -> None:
        super().__init__()
        side = math.isqrt(max_length - 1) + 1
        rows, self.columns = _pair("shape", [side, side] if shape is None else shape)
        of_rows, of_columns = _pair("dims", [embed_dim // 4, embed_dim - embed_dim // 4] if dims is None else dims)
        if rows * self.columns < max_length:
            raise ValueError(
                f"`shape` of axial positions must have at least as many cells as the longest text has tokens "
                f"({max_length}), but is {shape}, which has {rows * self.columns}."
            )
        if of_rows + of_columns != embed_dim:
            raise ValueError(f"`dims` of axial positions must sum to `embed_dim` ({embed_dim}), but is {dims}.")
        self.row_weight = _table(rows, of_rows, embed_dim)
        self.column_weight = _table(self.columns, of_columns, embed_dim)

    def forward(self, position: Tensor, length: int) -> Tensor:
        cells = self.row_weight.size(0) * self.columns
        if length > cells:
            raise ValueError(f"A text must have at most {cells} tokens, one per axial position, but has {length}.")
        # (..., D1), (..., D2) -> (..., D)
        row = embedding(position // self.columns, self.row_weight)
        column = embedding(position % self.columns, self.column_weight)
        return torch.cat([row, column], dim=-1).float()


def _pair(name: str, numbers: list[int]) -> tuple[int, int]:
    if len(numbers) != 2 or min(numbers) < 1:
        raise ValueError(f"`{name}` of axial positions must be two numbers of at least 1, but is {numbers}.")
    first, second = numbers
    return first, second


def _table(count: int, width: int, embed_dim: int) -> nn.Parameter:
    return nn.Parameter(nn.init.normal_(torch.empty(count, width), std=embed_dim**-0.5))

"""Positions: the role, the registry of kinds, and the kinds."""

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.sinusoids import sinusoids


class Positions(nn.Module, ABC):
    """Tells a model the position of a token in its document."""

    @abstractmethod
    def forward(self, position: Tensor, length: int) -> Tensor:
        """Return the embeddings of ``position`` (...), from 0 to ``length`` - 1, in float32: (..., D)."""


POSITIONS: Registry[Positions] = Registry("positions")


@POSITIONS.register("sinusoidal")
class SinusoidalPositions(Positions):
    """Sinusoidal position embeddings (Vaswani et al. 2017, section 3.5), sines first, then cosines.

    Args:
        first: the number of the first position; fairseq counts from 2, PEGASUS from 0.
        frequencies: "published" for 10000 ** -(2i / D), as PEGASUS has them; "fairseq" for 10000 ** -(i / (D / 2 - 1)).
    """

    def __init__(
        self, embed_dim: int, first: int = 2, frequencies: Literal["fairseq", "published"] = "fairseq"
    ) -> None:
        super().__init__()
        if embed_dim % 2 or embed_dim < 4:
            raise ValueError(f"`embed_dim` must be even and at least 4, but is {embed_dim}.")
        self.embed_dim = embed_dim
        self.first = first
        half = embed_dim // 2
        self._steps = half - 1 if frequencies == "fairseq" else half  # from a frequency of 1 to one of 1/10000
        # No buffer: each process grows it to its own longest document, but data-parallel training needs buffers of one
        # size.
        self._table = torch.empty(0, embed_dim)

    def _rows(self, count: int, device: torch.device) -> Tensor:
        numbers = torch.arange(self.first, self.first + count, dtype=torch.float, device="cpu")
        return sinusoids(numbers, self.embed_dim, self._steps).to(device)

    def forward(self, position: Tensor, length: int) -> Tensor:
        if length > self._table.size(0) or self._table.device != position.device:
            self._table = self._rows(max(length, 2 * self._table.size(0), 1024), position.device)
        return embedding(position, self._table)


@POSITIONS.register("learned")
class LearnedPositions(Positions):
    """One trained embedding per position (Gehring et al. 2017, section 3.1), as BART and LED have them.

    Args:
        length: rows of the table; None for ``max_length``. A model that states it can read other
            lengths, up to this one, with the same weights.
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


@POSITIONS.register("axial")
class AxialPositions(Positions):
    """Two short trained tables in place of a long one, as Reformer has them (Kitaev et al. 2020, public code).

    Positions are the cells of a grid of N1 rows and N2 columns. Position i is the embedding of row i // N2 beside that
    of column i mod N2, so that N1 x D1 + N2 x D2 parameters tell N1 x N2 positions apart.

    Args:
        shape: [N1, N2], a grid of at least N cells; None for the smallest with as many rows as columns.
        dims: [D1, D2], widths of the two tables, which sum to D; None for a quarter of D for the rows.
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

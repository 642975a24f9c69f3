"""Axial positions beside a loop over the formula of the paper's code."""

import pytest
import torch
from torch import nn

from pyramidions.nn.positions import AxialPositions


def make(shape: list[int] | None, dims: list[int] | None, embed_dim: int = 8, max_length: int = 1) -> AxialPositions:
    torch.manual_seed(0)
    return AxialPositions(embed_dim, max_length, shape, dims)


@pytest.mark.parametrize(("shape", "dims"), [([3, 5], [2, 6]), ([5, 3], [4, 4]), ([1, 7], [7, 1])])
def test_a_position_is_its_row_beside_its_column(shape: list[int], dims: list[int]) -> None:
    positions = make(shape, dims)
    weights: dict[str, nn.Parameter] = dict(positions.named_parameters())
    rows, columns = weights["row_weight"], weights["column_weight"]
    assert rows.shape == (shape[0], dims[0]) and columns.shape == (shape[1], dims[1])
    expected = [[*row, *column] for row in rows.tolist() for column in columns.tolist()]
    count = len(expected)
    torch.testing.assert_close(positions(torch.arange(count), count), torch.tensor(expected))


@pytest.mark.parametrize(("longest", "side"), [(1, 1), (16, 4), (17, 5)])
def test_without_options_a_square_covers_the_longest_text(longest: int, side: int) -> None:
    shapes = {name: tuple(weight.shape) for name, weight in make(None, None, max_length=longest).named_parameters()}
    assert shapes == {"row_weight": (side, 2), "column_weight": (side, 6)}

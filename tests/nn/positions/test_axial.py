"""Axial positions beside a loop over the formula of the paper's code."""

import pytest
import torch
from tables import for_each
from torch import nn

from pyramidions.nn.positions import AxialPositions


def make(shape: list[int] | None, dims: list[int] | None, embed_dim: int = 8, max_length: int = 1) -> AxialPositions:
    torch.manual_seed(0)
    return AxialPositions(embed_dim, max_length, shape, dims)


@for_each(("shape", "dims"), [([3, 5], [2, 6]), ([5, 3], [4, 4]), ([1, 7], [7, 1]), ([7, 1], [1, 7])])
def test_a_position_is_its_row_beside_its_column(shape: list[int], dims: list[int]) -> None:
    positions = make(shape, dims)
    weights: dict[str, nn.Parameter] = dict(positions.named_parameters())
    rows, columns = weights["row_weight"], weights["column_weight"]
    assert rows.shape == (shape[0], dims[0]) and columns.shape == (shape[1], dims[1])
    expected = [[*row, *column] for row in rows.tolist() for column in columns.tolist()]
    count = len(expected)
    torch.testing.assert_close(positions(torch.arange(count), count), torch.tensor(expected))


@for_each("shape", [[512, 1024], [1024, 512], [128, 128]])
def test_all_cells_of_the_grid_differ(shape: list[int]) -> None:
    # floor(i / 1024) beside i mod 512 would have said the same of positions 0 and 512.
    positions, count = make(shape, [4, 4]), shape[0] * shape[1]
    assert positions(torch.arange(count), count).unique(dim=0).size(0) == count


def test_the_tables_of_half_a_million_positions_take_three_mebibytes() -> None:
    positions = make([512, 1024], [512, 512], embed_dim=1024, max_length=512 * 1024)
    assert sum(weight.nbytes for weight in positions.parameters()) == 3 * 2**20


@for_each(("longest", "side"), [(1, 1), (2, 2), (16, 4), (17, 5), (16384, 128)])
def test_without_options_a_square_covers_the_longest_text(longest: int, side: int) -> None:
    shapes = {name: tuple(weight.shape) for name, weight in make(None, None, max_length=longest).named_parameters()}
    assert shapes == {"row_weight": (side, 2), "column_weight": (side, 6)}


@for_each(
    ("shape", "dims", "message"),
    [
        ([3, 5], [2, 6], r"`shape` .* cells as the longest text has tokens \(16\), but is \[3, 5\], which has 15."),
        ([4, 4], [2, 5], r"`dims` of axial positions must sum to `embed_dim` \(8\), but is \[2, 5\]."),
        ([4, 4, 4], None, r"`shape` of axial positions must be two numbers of at least 1, but is \[4, 4, 4\]."),
        ([-4, -4], None, r"`shape` of axial positions must be two numbers of at least 1, but is \[-4, -4\]."),
        ([4, 4], [8], r"`dims` of axial positions must be two numbers of at least 1, but is \[8\]."),
        ([4, 4], [0, 8], r"`dims` of axial positions must be two numbers of at least 1, but is \[0, 8\]."),
    ],
)
def test_an_option_that_breaks_a_rule_is_named(shape: list[int], dims: list[int] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(shape, dims, max_length=16)


def test_a_text_beyond_the_grid_is_refused() -> None:
    positions = make([3, 5], [2, 6])
    with pytest.raises(ValueError, match="A text must have at most 15 tokens, one per axial position, but has 16."):
        positions(torch.arange(16), 16)

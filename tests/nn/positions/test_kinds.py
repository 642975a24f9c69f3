"""Each kind of positions by hand."""

import pytest
import torch
from torch import nn

from pyramidions.nn.positions import AxialPositions, LearnedPositions, SinusoidalPositions


def test_sines_come_first_and_the_first_position_is_2() -> None:
    row = SinusoidalPositions(4)(torch.tensor([0]), 1)[0]
    angles = torch.tensor([2.0, 2.0 / 10000])
    torch.testing.assert_close(row, torch.cat([angles.sin(), angles.cos()]))


def test_the_table_grows_with_the_document_and_is_no_weight() -> None:
    positions = SinusoidalPositions(8)
    short = positions(torch.arange(1024), 1024)
    assert torch.equal(positions(torch.arange(3000), 3000)[:1024], short)
    assert not positions.state_dict()


def test_published_frequencies_fall_to_one_short_of_the_last_step() -> None:
    row = SinusoidalPositions(4, first=0, frequencies="published")(torch.tensor([3]), 4)[0]
    # 10000 ** -(2i / D) for D = 4
    angles = torch.tensor([3.0, 3.0 / 100])
    torch.testing.assert_close(row, torch.cat([angles.sin(), angles.cos()]))


def test_learned_positions_are_the_rows_of_a_table_as_long_as_the_longest_text() -> None:
    positions = LearnedPositions(8, max_length=5)
    assert positions.weight.shape == (5, 8) and 0.2 < LearnedPositions(64, 64).weight.std() * 64**0.5 < 1.1
    assert positions(torch.tensor([4, 0]), 5).equal(positions.weight[[4, 0]])
    # A stated length serves shorter texts.
    assert LearnedPositions(8, max_length=5, length=7).weight.shape == (7, 8)


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

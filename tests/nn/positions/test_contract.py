"""What every kind of positions promises, a new kind by being registered, and each kind by hand."""

import copy

import pytest
import torch
from small_parts import DIM, SETTING
from torch import nn

from pyramidions.nn.positions import POSITIONS, AxialPositions, LearnedPositions, Positions, SinusoidalPositions

kinds = pytest.mark.parametrize("kind", POSITIONS.names)


def make(kind: str) -> Positions:
    torch.manual_seed(0)
    return POSITIONS.build(kind, {}, **SETTING, max_length=3000)


def state(positions: Positions) -> dict[str, torch.Size]:
    """Return what data-parallel training sends from process to process, and what a checkpoint holds."""
    tensors = [*positions.named_parameters(), *positions.named_buffers(), *positions.state_dict().items()]
    return {name: tensor.shape for name, tensor in tensors}


@kinds
def test_each_position_has_an_embedding_of_its_own_in_float32(kind: str) -> None:
    for positions in (make(kind), make(kind).half()):
        found = positions(torch.arange(100).view(4, 25), 100)
        assert found.shape == (4, 25, DIM) and found.dtype == torch.float32 and found.isfinite().all()
    distance = (found.view(100, 1, DIM) - found.view(100, DIM)).abs().amax(dim=-1)
    assert (distance.fill_diagonal_(1.0) > 1e-3).all()
    assert positions(torch.tensor(1), 9).shape == (DIM,)


@kinds
def test_an_embedding_depends_on_its_position_alone(kind: str) -> None:
    positions, where = make(kind), torch.tensor([0, 3, 1, 4, 4])
    expected = positions(where, 5)
    assert positions(torch.arange(5), 5)[where].equal(expected)
    assert positions(where.expand(3, 5), 5).equal(expected.expand(3, 5, DIM))
    for length in (6, 1025, 3000, 5):
        assert positions(where, length).equal(expected)
        assert make(kind)(where, length).equal(expected)


@kinds
def test_no_state_has_a_size_that_differs_between_processes(kind: str) -> None:
    positions = make(kind)
    before = state(positions)
    positions(torch.arange(3000), 3000)
    assert state(positions) == before


@kinds
def test_embeddings_stand_on_the_device_of_the_positions(kind: str) -> None:
    positions, where = make(kind), torch.arange(5)
    expected = positions(where, 5)
    elsewhere = copy.deepcopy(positions).to("meta")(where.to("meta"), 5)
    assert elsewhere.device.type == "meta" and elsewhere.shape == expected.shape
    assert positions(where, 5).equal(expected) and expected.device == where.device


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


def axial(shape: list[int] | None, dims: list[int] | None, embed_dim: int = 8, max_length: int = 1) -> AxialPositions:
    torch.manual_seed(0)
    return AxialPositions(embed_dim, max_length, shape, dims)


@pytest.mark.parametrize(("shape", "dims"), [([3, 5], [2, 6]), ([5, 3], [4, 4]), ([1, 7], [7, 1])])
def test_a_position_is_its_row_beside_its_column(shape: list[int], dims: list[int]) -> None:
    positions = axial(shape, dims)
    weights: dict[str, nn.Parameter] = dict(positions.named_parameters())
    rows, columns = weights["row_weight"], weights["column_weight"]
    assert rows.shape == (shape[0], dims[0]) and columns.shape == (shape[1], dims[1])
    expected = [[*row, *column] for row in rows.tolist() for column in columns.tolist()]
    count = len(expected)
    torch.testing.assert_close(positions(torch.arange(count), count), torch.tensor(expected))


@pytest.mark.parametrize(("longest", "side"), [(1, 1), (16, 4), (17, 5)])
def test_without_options_a_square_covers_the_longest_text(longest: int, side: int) -> None:
    shapes = {name: tuple(weight.shape) for name, weight in axial(None, None, max_length=longest).named_parameters()}
    assert shapes == {"row_weight": (side, 2), "column_weight": (side, 6)}

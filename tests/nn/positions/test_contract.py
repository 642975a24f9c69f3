"""What every kind of positions promises; a new kind is held to it by being registered."""

import copy

import pytest
import torch
from small_parts import DIM, SETTING

from pyramidions.nn.positions import POSITIONS, Positions

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

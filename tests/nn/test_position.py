import pytest
import torch

from pyramidions.nn.positions import SinusoidalPositions


def test_sines_come_first_and_the_first_position_is_2() -> None:
    row = SinusoidalPositions(4)(torch.tensor([0]), 1)[0]
    angles = torch.tensor([2.0, 2.0 / 10000])
    torch.testing.assert_close(row, torch.cat([angles.sin(), angles.cos()]))


def test_the_table_grows_with_the_document() -> None:
    positions = SinusoidalPositions(8)
    short = positions(torch.arange(1024), 1024)
    assert torch.equal(positions(torch.arange(3000), 3000)[:1024], short)


def test_the_table_is_no_weight() -> None:
    assert not SinusoidalPositions(8).state_dict()


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="`embed_dim` must be even and at least 4, but is 7."):
        SinusoidalPositions(7)

import torch

from pyramidions.nn.positions import LearnedPositions, SinusoidalPositions


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

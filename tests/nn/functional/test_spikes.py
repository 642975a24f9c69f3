import torch

from pyramidions.nn.boundaries.predicted import spikes


def test_a_spike_is_above_all_of_the_window_and_ties_are_none() -> None:
    x = torch.tensor([[1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 3.0]])
    assert spikes(x, 1).int().tolist() == [[1, 1, 0, 1, 0, 0, 1]]
    assert spikes(x, 2).int().tolist() == spikes(x, 9).int().tolist() == [[1, 1, 0, 0, 0, 0, 1]]
    assert spikes(torch.zeros(2, 1), 3).tolist() == [[True], [True]]


def test_it_equals_a_loop_also_where_values_repeat() -> None:
    x = torch.randint(0, 4, (5, 30), generator=torch.Generator().manual_seed(0)).float()
    for window in range(1, 5):
        for row, found in zip(x.tolist(), spikes(x, window).tolist(), strict=True):
            assert found == [all(row[i] > before for before in row[max(0, i - window) : i]) for i in range(30)]

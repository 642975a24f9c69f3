import pytest
import torch

from pyramidions.plugin.criterions.overlap_reward import OverlapReward

# Ids 0 to 4 are no text; 4 stands between sentences.
IS_TEXT = torch.tensor([False] * 3 + [True, False] + [True] * 6)
SOURCE = torch.tensor([[5, 6, 4, 7, 5, 4, 8, 8, 2], [9, 4, 5, 2, 1, 1, 1, 1, 1]])
UNITS = SOURCE.eq(4).cumsum(1)
TARGET = torch.tensor([[5, 6, 4, 5, 7, 2], [10, 2, 1, 1, 1, 1]])


def rewards(*chosen: list[list[bool]], rouge2_weight: float = 1.0) -> list[list[float]]:
    reward = OverlapReward(UNITS, SOURCE, TARGET, IS_TEXT, 3, rouge2_weight)
    return reward(torch.tensor(chosen)).tolist()  # type: ignore[no-any-return]


NOTHING = [False, False, False]


def test_the_reward_is_rouge_1_plus_weighted_rouge_2() -> None:
    # The summary has the pieces 5 6, 5 7; the extract 5 6, 7 5: four in common, and of two bigrams the one 5 6.
    chosen = [[True, True, False], NOTHING]
    assert rewards(chosen)[0][0] == pytest.approx(1.0 + 2 * 1 / (2 + 2))
    assert rewards(chosen, rouge2_weight=0.5)[0][0] == pytest.approx(1.0 + 0.5 * 0.5)
    assert rewards(chosen, rouge2_weight=0.0)[0][0] == pytest.approx(1.0)


def test_repetitions_beyond_the_summary_do_not_count_as_hits() -> None:
    first = [[True, False, False], NOTHING]
    with_noise = [[True, False, True], NOTHING]
    assert rewards(first, rouge2_weight=0.0)[0][0] == pytest.approx(2 * 2 / (2 + 4))
    assert rewards(with_noise, rouge2_weight=0.0)[0][0] == pytest.approx(2 * 2 / (4 + 4))


def test_nothing_selected_and_nothing_in_common_is_no_reward() -> None:
    assert rewards([NOTHING, NOTHING], [NOTHING, [True, True, False]]) == [[0.0, 0.0], [0.0, 0.0]]


def test_selections_of_a_document_are_rewarded_one_by_one() -> None:
    several = [[[True, False, False], NOTHING], [[True, True, False], NOTHING]]
    assert rewards(*several) == [rewards(each)[0] for each in several]

"""Selection within a budget."""

import numpy as np
import pytest

from pyramidions.base.errors import UserError
from pyramidions.extract import Budget, SelectionRules, select

SENTENCES = ["one two three", "four five", "six", "seven eight nine ten"]


def chosen(scores: list[float], redundancy: str = "none", **budget: int) -> list[int]:
    return select(SENTENCES, np.array(scores), SelectionRules(Budget(**budget), redundancy))


NO = float("-inf")


@pytest.mark.parametrize(
    ("scores", "budget", "places"),
    [
        pytest.param([3, 1, 4, 2], {"sentences": 2}, [0, 2], id="the best in reading order"),
        pytest.param([1, 1, 1, 1], {"sentences": 2}, [0, 1], id="of equal ones the first"),
        pytest.param([3, 1, 2, 4], {"words": 5}, [2, 3], id="what does not fit is passed over"),
        pytest.param([4, 3, 2, 1], {"words": 6, "sentences": 2}, [0, 1], id="both bounds"),
        pytest.param([1, 2, 3, 4], {"words": 6, "sentences": 1}, [3], id="sentences bind"),
        pytest.param([1, 2, NO, 3], {"words": 1}, [3], id="where none fits the best alone"),
        pytest.param([1, NO, 2, NO], {"words": 1000}, [0, 2], id="minus infinity is never selected"),
        pytest.param([1, 2, 3, 4], {"words": 1000}, [0, 1, 2, 3], id="a budget above the text"),
    ],
)
def test_the_best_sentences_are_selected_within_the_budget(
    scores: list[float], budget: dict[str, int], places: list[int]
) -> None:
    assert chosen(scores, **budget) == places


def test_no_sentence_gives_no_selection():
    assert select([], np.zeros(0), SelectionRules(Budget(words=5))) == []
    assert select([], np.zeros(0), SelectionRules(Budget(words=5), "mmr")) == []


@pytest.mark.parametrize("again", ["now the cat sat there", "now the cat, sat. down"])
def test_trigrams_pass_over_a_sentence_that_repeats_one(again: str):
    sentences = ["the cat sat down", again, "the dog sat"]
    assert select(sentences, np.array([3.0, 2.0, 1.0]), SelectionRules(Budget(sentences=2), "trigrams")) == [0, 2]


def test_mmr_prefers_what_is_new():
    sentences = ["the cat sat down", "the cat sat down", "dogs bark loudly"]
    scores = np.array([3.0, 2.9, 2.0])
    assert select(sentences, scores, SelectionRules(Budget(sentences=2), "mmr", 0.5)) == [0, 2]
    assert select(sentences, scores, SelectionRules(Budget(sentences=2), "mmr", 1.0)) == [0, 1]


@pytest.mark.parametrize(
    ("rules", "scores", "error"),
    [
        (SelectionRules(Budget(words=0)), [1, 2, 3, 4], UserError),
        (SelectionRules(Budget(sentences=-1)), [1, 2, 3, 4], UserError),
        (SelectionRules(Budget(), "all"), [1, 2, 3, 4], UserError),
        (SelectionRules(Budget()), [1, float("nan"), 2, 3], ValueError),
    ],
)
def test_wrong_rules_and_scores_are_refused(rules: SelectionRules, scores: list[float], error: type[Exception]) -> None:
    with pytest.raises(error):
        select(SENTENCES, np.array(scores), rules)

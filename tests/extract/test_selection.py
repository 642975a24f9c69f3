"""Selection within a budget."""

import numpy as np
import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.extract import Budget, SelectionRules, select

SENTENCES = ["one two three", "four five", "six", "seven eight nine ten"]


def chosen(scores: list[float], redundancy: str = "none", **budget: int) -> list[int]:
    return select(SENTENCES, np.array(scores), SelectionRules(Budget(**budget), redundancy))


def test_the_best_come_in_reading_order():
    assert chosen([1, 4, 3, 2], sentences=2) == [1, 2]
    assert chosen([3, 1, 4, 2], sentences=2) == [0, 2]


def test_a_sentence_that_does_not_fit_is_passed_over():
    assert chosen([3, 1, 2, 4], words=5) == [2, 3]


def test_words_and_sentences_bound_together():
    assert chosen([4, 3, 2, 1], words=6, sentences=2) == [0, 1]


def test_if_none_fits_the_best_comes_alone():
    assert chosen([1, 2, float("-inf"), 3], words=1) == [3]
    assert select(["one two three"], np.array([1.0]), SelectionRules(Budget(words=1))) == [0]


def test_a_budget_above_the_text_takes_all():
    assert chosen([1, 2, 3, 4], words=1000) == [0, 1, 2, 3]


def test_a_score_of_minus_infinity_is_never_selected():
    assert chosen([1, float("-inf"), 2, float("-inf")], words=1000) == [0, 2]


def test_equal_scores_prefer_the_earlier_sentence():
    assert chosen([1, 1, 1, 1], sentences=2) == [0, 1]


def test_no_sentence_gives_no_selection():
    assert select([], np.zeros(0), SelectionRules(Budget(words=5))) == []
    assert select([], np.zeros(0), SelectionRules(Budget(words=5), "mmr")) == []


def test_trigrams_pass_over_a_sentence_that_repeats_one():
    sentences = ["the cat sat down", "now the cat sat there", "the dog sat"]
    assert select(sentences, np.array([3.0, 2.0, 1.0]), SelectionRules(Budget(sentences=2), "trigrams")) == [0, 2]


def test_mmr_prefers_what_is_new():
    sentences = ["the cat sat down", "the cat sat down", "dogs bark loudly"]
    scores = np.array([3.0, 2.9, 2.0])
    assert select(sentences, scores, SelectionRules(Budget(sentences=2), "mmr", 0.5)) == [0, 2]
    assert select(sentences, scores, SelectionRules(Budget(sentences=2), "mmr", 1.0)) == [0, 1]


@for_each("budget", [Budget(words=0), Budget(sentences=0), Budget(words=-1)])
def test_a_budget_below_1_is_refused(budget):
    with pytest.raises(UserError, match="must be at least 1, but is"):
        select(SENTENCES, np.ones(4), SelectionRules(budget))


def test_an_unknown_redundancy_is_refused():
    with pytest.raises(UserError, match="`redundancy` must be one of none, trigrams, mmr, but is 'all'"):
        chosen([1, 2, 3, 4], "all", words=3)


def test_punctuation_does_not_hide_a_repetition():
    sentences = ["the cat sat.", "now the cat, sat down", "the dog sat"]
    assert select(sentences, np.array([3.0, 2.0, 1.0]), SelectionRules(Budget(sentences=2), "trigrams")) == [0, 2]


def test_a_score_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="one is NaN"):
        chosen([1, float("nan"), 2, 3], sentences=2)

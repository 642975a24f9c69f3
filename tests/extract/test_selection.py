"""Selection within a budget, and the oracle against rouge-score and against every subset of six sentences."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from pyramidions.base.errors import UserError
from pyramidions.extract import Budget, Oracle, SelectionRules, select
from pyramidions.extract.oracle import covering, oracle
from pyramidions.text.outline import Outline, Unit

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


SIX = (
    "we study pooling in long documents .",
    "the weather in spring is mild .",
    "pooling keeps few vectors .",
    "decoding gets four times faster .",
    "we thank our families .",
    "quality stays as it was .",
)
REFERENCE = "pooling keeps few vectors of long documents . decoding gets faster , and quality stays ."


def rouge(sentences: list[str], reference: str) -> float:
    """ROUGE-1 + ROUGE-2 of sentences by rouge-score, whose bigrams cross them."""
    scores = RougeScorer(["rouge1", "rouge2"], use_stemmer=False).score(reference, " ".join(sentences))
    return scores["rouge1"].fmeasure + scores["rouge2"].fmeasure


def test_of_six_sentences_it_chooses_the_best_subset():
    subsets = [c for size in range(7) for c in combinations(range(6), size)]
    best = max(subsets, key=lambda chosen: rouge([SIX[index] for index in chosen], REFERENCE))
    assert sorted(oracle(SIX, REFERENCE)) == sorted(best) == [2, 3, 5]


def _sum(sentences: list[str], reference: str) -> float:
    total = 0.0
    expected = _words(reference)
    for n in (1, 2):
        made = [tuple(w[i : i + n]) for s in sentences if (w := _words(s)) for i in range(len(w) - n + 1)]
        wanted = [tuple(expected[i : i + n]) for i in range(len(expected) - n + 1)]
        hits = sum(min(made.count(gram), wanted.count(gram)) for gram in set(wanted))
        total += 2 * hits / (len(made) + len(wanted)) if wanted else 0.0
    return total


def _words(text: str) -> list[str]:
    return [word for word in text.split() if word.isalnum()]


def test_it_ends_where_no_sentence_is_a_gain_or_fits_the_words():
    assert oracle(["green pears", "red apples"], "red apples") == [1]
    assert oracle(["red apples"], "...") == []
    assert oracle(["one two three", "one two", "four"], "one two three four", words=2) == [1]
    assert oracle(["one two three", "one two", "four"], "one two three four", words=3) == [0]


def test_ranks_follow_the_order_of_choice_and_others_are_never_extracted():
    outline = Outline(tuple(Unit(sentence, 0) for sentence in SIX), ("",))
    scores = Oracle(REFERENCE).rank(outline)
    assert list(np.argsort(-scores)[:3]) == oracle(SIX, REFERENCE)
    assert np.isneginf(scores[[0, 1, 4]]).all()


def by_definition(sentences: list[str], reference: str) -> list[int]:
    """The definition, with every score counted anew."""
    chosen: list[int] = []
    while True:
        scores = [_sum([*(sentences[i] for i in chosen), s], reference) for s in sentences]
        open_ = [index for index in range(len(sentences)) if index not in chosen]
        best = max(open_, key=lambda index: (scores[index], -index), default=None)
        if best is None or scores[best] <= _sum([sentences[i] for i in chosen], reference) + 1e-12:
            return chosen
        chosen.append(best)


words = st.lists(st.sampled_from("abcd"), max_size=6).map(" ".join)


@given(st.lists(words, max_size=6), words)
@settings(max_examples=80, deadline=None)
def test_it_chooses_as_the_definition_does(sentences, reference):
    assert oracle(sentences, reference) == by_definition(sentences, reference)


def recall(sentences: list[str], reference: str) -> int:
    """How many bigrams of the reference are in sentences."""

    def bigrams(text: str) -> Counter[tuple[str, ...]]:
        return Counter(pairwise(text.split()))

    return (sum(map(bigrams, sentences), Counter()) & bigrams(reference)).total()


@given(st.lists(words, max_size=6), words)
@settings(max_examples=80, deadline=None)
def test_covering_chooses_whatever_raises_the_recall_of_bigrams_most(sentences, reference):
    expected: list[int] = []
    while True:
        chosen = [sentences[index] for index in expected]
        gains = [recall([*chosen, sentence], reference) - recall(chosen, reference) for sentence in sentences]
        if not any(gains):
            break
        expected.append(gains.index(max(gains)))
    assert covering(sentences, reference) == expected

"""The oracle, against rouge-score and against every subset of six sentences."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from pyramidions.extract import Oracle
from pyramidions.extract.oracle import oracle
from pyramidions.text.outline import Outline, Unit

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
    """ROUGE-1 + ROUGE-2 of sentences, no bigram across them."""
    ones = RougeScorer(["rouge1"], use_stemmer=False)
    grams = ones.score(reference, " ".join(sentences))["rouge1"].fmeasure
    # A word between sentences that occurs once only keeps bigrams apart, as far as hits go.
    twos = RougeScorer(["rouge2"], use_stemmer=False)
    return grams + twos.score(reference, " ".join(sentences))["rouge2"].fmeasure


def test_of_six_sentences_it_chooses_the_best_subset():
    subsets = [c for size in range(7) for c in combinations(range(6), size)]
    best = max(subsets, key=lambda chosen: rouge([SIX[index] for index in chosen], REFERENCE))
    assert sorted(oracle(SIX, REFERENCE)) == sorted(best) == [2, 3, 5]


def test_each_sentence_is_the_one_that_raises_the_sum_most():
    chosen = oracle(SIX, REFERENCE)
    for step in range(len(chosen)):
        before = [SIX[index] for index in chosen[:step]]
        gains = [_sum([*before, sentence]) if sentence not in before else -1 for sentence in SIX]
        assert int(np.argmax(gains)) == chosen[step]


def _sum(sentences: list[str]) -> float:
    total = 0.0
    for n in (1, 2):
        made = [tuple(w[i : i + n]) for s in sentences if (w := _words(s)) for i in range(len(w) - n + 1)]
        wanted = [tuple(_words(REFERENCE)[i : i + n]) for i in range(len(_words(REFERENCE)) - n + 1)]
        hits = sum(min(made.count(gram), wanted.count(gram)) for gram in set(wanted))
        total += 2 * hits / (len(made) + len(wanted))
    return total


def _words(text: str) -> list[str]:
    return [word for word in text.split() if word.isalnum()]


def test_it_ends_where_no_sentence_is_a_gain():
    assert oracle(["green pears", "red apples"], "red apples") == [1]
    assert oracle(["green pears"], "red apples") == []
    assert oracle([], "red apples") == []
    assert oracle(["red apples"], "...") == []


def test_the_budget_counts_words():
    assert oracle(["one two three", "one two", "four"], "one two three four", words=2) == [1]
    assert oracle(["one two three", "one two", "four"], "one two three four", words=3) == [0]


def test_of_equal_sentences_the_first_is_chosen_and_only_once():
    assert oracle(["a b", "a b"], "a b") == [0]


def test_a_word_counts_as_often_as_the_reference_has_it():
    assert oracle(["a a a a", "a b"], "a a b") == [1]


def test_ranks_follow_the_order_of_choice_and_others_are_never_extracted():
    outline = Outline(tuple(Unit(sentence, 0) for sentence in SIX), ("",))
    scores = Oracle(REFERENCE).rank(outline)
    assert list(np.argsort(-scores)[:3]) == oracle(SIX, REFERENCE)
    assert np.isneginf(scores[[0, 1, 4]]).all()


words = st.lists(st.sampled_from("abcde"), max_size=6).map(" ".join)


@given(st.lists(words, max_size=6), words)
@settings(max_examples=80, deadline=None)
def test_unigram_scores_are_those_of_rouge_score(sentences, reference):
    chosen = oracle(sentences, reference)
    assert len(set(chosen)) == len(chosen)
    # No further sentence is a gain in unigrams and bigrams alike.
    made = rouge([sentences[index] for index in chosen[:1]], reference) if chosen else 0.0
    assert all(rouge([sentence], reference) <= made + 1e-9 for sentence in sentences)

"""Metrics that count words: by hand, and against naive loops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.scoring import METRICS, Example
from pyramidions.text.words import words_and_marks

SOURCE = "A cat sleeps on the red mat. The dog barks."
TEXTS = st.lists(st.sampled_from("a b c d .".split()), max_size=25).map(" ".join)


def figures(name, prediction, source=SOURCE, reference="x"):
    metric = METRICS[name]()
    return dict(zip(metric.figures, metric.score([Example(prediction, (reference,), source)])[0], strict=True))


def test_coverage_counts_copied_words_and_density_long_runs():
    # Fragments: "the dog" and "sleeps on"; "loudly" is new. The document has 12 words and marks.
    found = figures("coverage", "The dog loudly sleeps on")
    assert found == {"coverage": 4 / 5, "density": (4 + 4) / 5, "compression": 12 / 5}


def test_a_copied_document_has_coverage_1_and_the_density_of_its_length():
    found = figures("coverage", SOURCE)
    assert found == {"coverage": 1, "density": len(words_and_marks(SOURCE)), "compression": 1}


def test_novel_ngrams_are_those_the_document_lacks():
    found = figures("novelty", "the dog sleeps on", SOURCE)
    assert found == {"novel1": 0, "novel2": pytest.approx(100 / 3), "novel3": 100, "novel4": 100}


@given(TEXTS, TEXTS)
def test_novelty_equals_a_double_loop(prediction, source):
    summary, document = prediction.split(), source.split()
    for n in (1, 2, 3, 4):
        ours = {tuple(summary[i : i + n]) for i in range(len(summary) - n + 1)}
        new = [gram for gram in ours if all(tuple(document[i : i + n]) != gram for i in range(len(document)))]
        expected = 100 * len(new) / len(ours) if ours else 0
        assert figures("novelty", prediction, source)[f"novel{n}"] == pytest.approx(expected)


def test_repetition_counts_what_came_before():
    # Of six trigrams two came before; of three sentences one.
    found = figures("repetition", "a cat sat. A cat sat. Dogs bark.")
    assert found["repeated_sentences"] == pytest.approx(100 / 3)
    assert figures("repetition", "a b c d a b c d")["repeated3"] == pytest.approx(100 * 2 / 6)
    assert figures("repetition", "a b")["repeated3"] == 0


def test_length_is_in_words_sentences_and_multiples_of_the_reference():
    found = figures("length", "A cat sleeps. It's red!", reference="Three words here")
    assert found == {"words": 6, "sentences": 2, "length_ratio": 2}


def test_what_nobody_sees_makes_no_words():
    assert figures("length", "co\u00adoperate ﬁnally")["words"] == 2


def test_several_references_count_by_their_mean_length():
    metric = METRICS["length"]()
    assert metric.score([Example("a b", ("a b c", "d"))])[0, 2] == 1

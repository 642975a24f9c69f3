import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.scoring import LABELS
from pyramidions.scoring.scores import document_scores


def test_scores_are_f_measures_in_percent():
    # Of 3 and 4 words 2 are shared, "the cat" in this order.
    scores = document_scores("the cat sat", "the cat lay down")
    assert scores["rouge1"] == pytest.approx(100 * 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert scores["rouge2"] == pytest.approx(100 * 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert scores["rougeL"] == scores["rouge1"]


def test_words_are_stemmed():
    assert document_scores("cats jumped", "cat jumps")["rouge1"] == 100


def test_lsum_looks_at_sentences_and_l_does_not():
    scores = document_scores("cats sleep. dogs bark.", "dogs bark. cats sleep.")
    assert scores["rougeLsum"] == 100
    assert scores["rougeL"] == 50


def test_line_breaks_and_markup_of_either_side_make_no_difference():
    plain = document_scores("cats sleep. dogs bark.", "dogs bark. cats sleep.")
    assert document_scores("cats\nsleep.\u00a0dogs\x00 bark.", "dogs bark.\n\n\ncats sleep.") == plain


def test_an_empty_summary_scores_nothing():
    assert document_scores("", "dogs bark.") == dict.fromkeys(LABELS, 0.0)


@given(st.text("ab .", max_size=30))
def test_scores_stay_between_0_and_100(text):
    assert all(0 <= value <= 100 for value in document_scores(text, "a b. b a.").values())

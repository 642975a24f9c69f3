import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.errors import UserError
from pyramidions.scoring.rouge import METRICS, Rouge, document_scores, lead, score_documents


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
    assert document_scores("", "dogs bark.") == dict.fromkeys(METRICS, 0.0)


@given(st.text("ab .", max_size=30))
def test_scores_stay_between_0_and_100(text):
    assert all(0 <= value <= 100 for value in document_scores(text, "a b. b a.").values())


def test_means_are_arithmetic_and_documents_keep_their_order():
    rouge = score_documents(["a b", "x"], ["a b", "y"])
    assert rouge.scores[:, 0].tolist() == [100, 0]
    assert rouge.estimates["rouge1"].mean == 50


def test_the_interval_holds_the_mean_and_is_the_same_every_time():
    scores = np.random.default_rng(0).uniform(0, 100, (50, 4))
    first, second = Rouge(scores).estimates, Rouge(scores).estimates
    assert first == second
    for estimate in first.values():
        assert estimate.low < estimate.mean < estimate.high
    # The mean of 50 uniform numbers has a standard error of 100 / sqrt(12 * 50) = 4.1.
    assert first["rouge1"].high - first["rouge1"].low == pytest.approx(2 * 1.96 * 4.1, rel=0.2)


def test_the_signature_says_what_decides():
    assert Rouge(np.zeros((40, 4))).signature == (
        "rouge-score 0.1.2 | stemmer | F1 | sentences: sentencex 1.0.32 | normalisation NFKC | "
        "bootstrap 95% 1000 seed 1 | n=40"
    )


def test_a_clear_difference_is_significant_and_none_is_not():
    noise = np.random.default_rng(0).normal(0, 1, (60, 4))
    base = np.random.default_rng(1).uniform(20, 60, (60, 4))
    better = Rouge(base + 5 + noise).compare(Rouge(base))["rouge1"]
    assert 4 < better.low < better.difference < better.high < 6
    assert better.p_value == pytest.approx(2 / 1001)
    same = Rouge(base + noise - noise.mean(axis=0)).compare(Rouge(base))["rouge1"]
    assert same.low < 0 < same.high
    assert same.p_value > 0.5
    assert Rouge(base).compare(Rouge(base))["rouge1"] == (0, 0, 0, 1)


def test_many_processes_give_the_same_scores():
    predictions = [f"cat {i} sleeps. dog {i % 7} barks" for i in range(150)]
    references = [f"dog {i % 5} barks. a cat sleeps {i}" for i in range(150)]
    one = score_documents(predictions, references)
    two = score_documents(predictions, references, workers=2)
    assert (one.scores == two.scores).all()


def test_unequal_counts_are_refused():
    with pytest.raises(UserError, match="as many summaries as references, but there are 16 and 20"):
        score_documents(["x"] * 16, ["x"] * 20)
    with pytest.raises(UserError, match="on the same documents, but they have 2 and 3"):
        Rouge(np.zeros((2, 4))).compare(Rouge(np.zeros((3, 4))))
    with pytest.raises(UserError, match="at least one document"):
        score_documents([], [])


def test_lead_takes_whole_sentences_that_fit_and_at_least_one():
    text = "one two three. four five six. seven eight."
    assert lead(text, 7) == "one two three. four five six."
    assert lead(text, 8) == text
    assert lead(text, 1) == "one two three."
    assert lead("", 5) == ""

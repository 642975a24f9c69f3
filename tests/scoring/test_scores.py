from importlib.metadata import version

import numpy as np
import pytest

from pyramidions.base.errors import UserError
from pyramidions.scoring import FIGURES, METRICS
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import Scores, metrics_of, score_documents

ROUGE = METRICS["rouge"].figures


def rouge_of(predictions, references, **options):
    examples = Examples(predictions, [(reference,) for reference in references])
    return score_documents(examples, metrics_of(["rouge"]), **options)


def test_means_are_arithmetic_and_documents_keep_their_order():
    rouge = rouge_of(["a b", "x"], ["a b", "y"])
    assert rouge.scores[:, 0].tolist() == [100, 0]
    assert rouge.estimates["rouge1"].mean == 50


def test_the_interval_holds_the_mean_and_is_the_same_every_time():
    scores = np.random.default_rng(0).uniform(0, 100, (50, 4))
    first, second = Scores(ROUGE, scores).estimates, Scores(ROUGE, scores).estimates
    assert first == second
    for estimate in first.values():
        assert estimate.low < estimate.mean < estimate.high
    # The mean of 50 uniform numbers has a standard error of 100 / sqrt(12 * 50) = 4.1.
    assert first["rouge1"].high - first["rouge1"].low == pytest.approx(2 * 1.96 * 4.1, rel=0.2)


def test_the_signature_says_what_decides():
    signatures = [metric.signature() for metric in metrics_of(["rouge"]).values()]
    assert Scores(ROUGE, np.zeros((40, 4)), signatures).signature == (
        f"rouge-score {version('rouge-score')} | stemmer | F1 | sentences: sentencex 1.0.32 | "
        "normalisation NFKC, powers as 10^6 | bootstrap 95% 1000 seed 1 | n=40"
    )


def test_a_clear_difference_is_significant_and_none_is_not():
    noise = np.random.default_rng(0).normal(0, 1, (60, 4))
    base = np.random.default_rng(1).uniform(20, 60, (60, 4))
    better = Scores(ROUGE, base + 5 + noise).compare(Scores(ROUGE, base))["rouge1"]
    assert 4 < better.low < better.difference < better.high < 6
    assert better.p_value == pytest.approx(2 / 1001)
    same = Scores(ROUGE, base + noise - noise.mean(axis=0)).compare(Scores(ROUGE, base))["rouge1"]
    assert same.low < 0 < same.high
    assert same.p_value > 0.5
    assert Scores(ROUGE, base).compare(Scores(ROUGE, base))["rouge1"] == (0, 0, 0, 1)


def test_many_processes_give_the_same_scores():
    predictions = [f"cat {i} sleeps. dog {i % 7} barks" for i in range(150)]
    references = [f"dog {i % 5} barks. a cat sleeps {i}" for i in range(150)]
    one = rouge_of(predictions, references)
    two = rouge_of(predictions, references, workers=2)
    assert (one.scores == two.scores).all()


def test_unequal_counts_are_refused():
    with pytest.raises(UserError, match="as many summaries as references, but there are 16 and 20"):
        rouge_of(["x"] * 16, ["x"] * 20)
    with pytest.raises(UserError, match="on the same documents, but they have 2 and 3"):
        Scores(ROUGE, np.zeros((2, 4))).compare(Scores(ROUGE, np.zeros((3, 4))))
    with pytest.raises(UserError, match="at least one document"):
        rouge_of([], [])


def test_systems_are_compared_by_the_same_figures():
    other = {"rouge1": FIGURES["rouge1"]}
    with pytest.raises(UserError, match="by the same figures, but they have rouge1, rouge2, rougeL, rougeLsum and rou"):
        Scores(ROUGE, np.zeros((2, 4))).compare(Scores(other, np.zeros((2, 1))))

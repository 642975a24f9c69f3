import numpy as np
import pytest

from pyramidions.errors import UserError
from pyramidions.scoring import LABELS, METRICS, Metric, scores
from pyramidions.scoring.scores import Scores, score_documents


def test_means_are_arithmetic_and_documents_keep_their_order():
    rouge = score_documents(["a b", "x"], ["a b", "y"])
    assert rouge.scores[:, 0].tolist() == [100, 0]
    assert rouge.estimates["rouge1"].mean == 50


def test_the_interval_holds_the_mean_and_is_the_same_every_time():
    scores = np.random.default_rng(0).uniform(0, 100, (50, 4))
    first, second = Scores(scores).estimates, Scores(scores).estimates
    assert first == second
    for estimate in first.values():
        assert estimate.low < estimate.mean < estimate.high
    # The mean of 50 uniform numbers has a standard error of 100 / sqrt(12 * 50) = 4.1.
    assert first["rouge1"].high - first["rouge1"].low == pytest.approx(2 * 1.96 * 4.1, rel=0.2)


def test_the_signature_says_what_decides():
    assert Scores(np.zeros((40, 4))).signature == (
        "rouge-score 0.1.2 | stemmer | F1 | sentences: sentencex 1.0.32 | normalisation NFKC | "
        "bootstrap 95% 1000 seed 1 | n=40"
    )


def test_a_clear_difference_is_significant_and_none_is_not():
    noise = np.random.default_rng(0).normal(0, 1, (60, 4))
    base = np.random.default_rng(1).uniform(20, 60, (60, 4))
    better = Scores(base + 5 + noise).compare(Scores(base))["rouge1"]
    assert 4 < better.low < better.difference < better.high < 6
    assert better.p_value == pytest.approx(2 / 1001)
    same = Scores(base + noise - noise.mean(axis=0)).compare(Scores(base))["rouge1"]
    assert same.low < 0 < same.high
    assert same.p_value > 0.5
    assert Scores(base).compare(Scores(base))["rouge1"] == (0, 0, 0, 1)


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
        Scores(np.zeros((2, 4))).compare(Scores(np.zeros((3, 4))))
    with pytest.raises(UserError, match="at least one document"):
        score_documents([], [])


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: "-".join(metric.labels))
def test_a_metric_has_a_figure_for_each_label_and_a_signature(metric):
    figures = metric.score("a cat sleeps.", "a dog sleeps. a cat barks.")
    assert len(figures) == len(metric.labels)
    assert all(0 <= figure <= 100 for figure in figures)
    assert metric.signature()


def test_no_two_metrics_have_a_name_in_common():
    assert len(LABELS) == sum(len(metric.labels) for metric in METRICS)


def test_a_further_metric_has_columns_of_its_own(monkeypatch):
    same = Metric({"same": "Same"}, lambda summary, reference: [100.0 * (summary == reference)], lambda: "same 1.0")
    monkeypatch.setattr(scores, "METRICS", (*METRICS, same))
    monkeypatch.setattr(scores, "LABELS", {**LABELS, **same.labels})
    found = score_documents(["a b", "x"], ["a b", "y"])
    assert found.estimates["same"].mean == 50
    assert "| same 1.0 | bootstrap" in found.signature
    assert found.compare(score_documents(["x", "x"], ["a b", "y"]))["same"].difference == 50

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
import pytest

from pyramidions.scoring import METRICS
from pyramidions.scoring.examples import Examples, lead
from pyramidions.scoring.scores import Scores, metrics_of, pooled, pooled_difference, score_documents
from pyramidions.text.language import Language

ROUGE = METRICS["rouge"].figures


def rouge_of(predictions: Sequence[str], references: Sequence[str], workers: int = 1) -> Scores:
    examples = Examples(predictions, [(reference,) for reference in references])
    return score_documents(examples, metrics_of(["rouge"]), workers=workers)


def test_means_are_arithmetic_and_documents_keep_their_order() -> None:
    rouge = rouge_of(["a b", "x"], ["a b", "y"])
    assert rouge.scores[:, 0].tolist() == [100, 0]
    assert rouge.estimates["rouge1"].mean == 50


def test_the_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    scores = np.random.default_rng(0).uniform(0, 100, (50, 4))
    first, second = Scores(ROUGE, scores).estimates, Scores(ROUGE, scores).estimates
    assert first == second
    for estimate in first.values():
        assert estimate.low < estimate.mean < estimate.high
    # The mean of 50 uniform numbers has a standard error of 100 / sqrt(12 * 50) = 4.1.
    assert first["rouge1"].high - first["rouge1"].low == pytest.approx(2 * 1.96 * 4.1, rel=0.2)


def test_the_signature_says_what_decides() -> None:
    signatures = [metric.signature() for metric in metrics_of(["rouge"]).values()]
    assert Scores(ROUGE, np.zeros((40, 4)), signatures).signature == (
        f"rouge-score {version('rouge-score')} | stemmer | F1 | "
        "sentences: sentencex 1.0.32, marks of lists masked, joined behind abbreviations | "
        "normalisation NFKC, powers as 10^6 | bootstrap 95% 1000 seed 1 | n=40"
    )


def test_a_clear_difference_is_significant_and_none_is_not() -> None:
    noise = np.random.default_rng(0).normal(0, 1, (60, 4))
    base = np.random.default_rng(1).uniform(20, 60, (60, 4))
    better = Scores(ROUGE, base + 5 + noise).compare(Scores(ROUGE, base))["rouge1"]
    assert 4 < better.low < better.difference < better.high < 6
    assert better.p_value == pytest.approx(2 / 1001)
    same = Scores(ROUGE, base + noise - noise.mean(axis=0)).compare(Scores(ROUGE, base))["rouge1"]
    assert same.low < 0 < same.high
    assert same.p_value > 0.5
    assert Scores(ROUGE, base).compare(Scores(ROUGE, base))["rouge1"] == (0, 0, 0, 1)


def test_many_processes_give_the_same_scores() -> None:
    predictions = [f"cat {i} sleeps. dog {i % 7} barks" for i in range(150)]
    references = [f"dog {i % 5} barks. a cat sleeps {i}" for i in range(150)]
    one, two = (rouge_of(predictions, references, workers) for workers in (1, 2))
    assert (one.scores == two.scores).all()


def test_one_seed_gives_the_interval_over_documents() -> None:
    found = pooled(np.arange(100.0)[None])
    # The standard error of the mean is 28.9 / 10.
    assert found == pytest.approx((49.5, 49.5 - 1.96 * 2.89, 49.5 + 1.96 * 2.89), abs=0.6)


def test_seeds_that_differ_widen_the_interval_even_where_all_documents_are_alike() -> None:
    assert pooled(np.ones((3, 50))) == (1, 1, 1)
    assert pooled(np.repeat([[1.0], [2.0], [3.0]], 50, axis=1)) == (2, 1, 3)


def test_systems_are_paired_by_document_and_one_may_have_more_seeds() -> None:
    documents = np.random.default_rng(3).normal(size=(1, 40)) * 100
    assert pooled_difference(documents + 0.5, documents) == pytest.approx((0.5, 0.5, 0.5))
    assert pooled_difference(np.full((3, 4), 2.0), np.full((2, 4), 1.0)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("text", "words", "language", "found"),
    [
        ("one two three. four five six. seven eight.", 7, "en", "one two three. four five six."),
        ("one two three. four five six. seven eight.", 8, "en", "one two three. four five six. seven eight."),
        # At least one sentence.
        ("one two three. four five six.", 1, "en", "one two three."),
        ("", 5, "en", ""),
        # Two characters count as a word.
        ("猫在这里睡觉。狗在那里跑。", 3, "zh", "猫在这里睡觉。"),
    ],
)
def test_lead_takes_whole_sentences_that_fit(text: str, words: int, language: str, found: str) -> None:
    assert lead(text, words, Language(language)) == found

from typing import Any

import numpy as np
import pytest
from fairseq.logging import metrics as logged
from fairseq.utils import apply_to_sample

from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.validation import ValidationScores, asked_metrics, validation_metrics
from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metrics.meteor import Meteor


def config(**given: Any) -> LongDocumentSummarizationConfig:
    return LongDocumentSummarizationConfig(data="x", **given)


def test_eval_rouge_is_the_metric_rouge_and_comes_first() -> None:
    assert list(asked_metrics(config())) == []
    assert list(asked_metrics(config(eval_rouge=True))) == ["rouge"]
    assert list(asked_metrics(config(eval_metrics="meteor,rouge", eval_rouge=True))) == ["rouge", "meteor"]
    assert list(validation_metrics(config(eval_metrics="meteor,coverage"))) == ["meteor", "coverage"]


def test_options_reach_the_metrics() -> None:
    (rouge,) = validation_metrics(config(eval_metrics="rouge(language='de')")).values()
    assert "language de" in rouge.signature()


class Task:
    def inference_step(self, generator: Any, models: Any, sample: Any) -> list[Any]:
        return [[{"tokens": np.array([number])}] for number in sample["says"]]


class Tokenizer:
    def decode(self, tokens: list[int]) -> str:
        return ["a cat sleeps", "a dog"][tokens[0]]


def test_a_batch_that_was_moved_to_a_gpu_is_scored_like_any_other() -> None:
    scores = ValidationScores(None, Tokenizer(), validation_metrics(config(eval_metrics="rouge,coverage")))  # type: ignore[arg-type]
    batch = {"split": "valid", "says": [0], "examples": [Example("", ("a cat", "cats"), "a cat sleeps")]}
    moved = apply_to_sample(lambda tensor: tensor, batch)
    assert scores.score(Task(), moved, None) == scores.score(Task(), batch, None)


def test_each_split_has_what_was_learned_of_it() -> None:
    class Learned(Meteor):
        def fit(self, examples: Any) -> None:
            self.documents = len(examples)

        def score(self, examples: Any) -> Any:
            return np.array([[self.documents] for _ in examples])

    scores = ValidationScores(None, Tokenizer(), {"meteor": Learned()})  # type: ignore[arg-type]
    for split, documents in (("valid", 3), ("test", 5)):
        scores.fit(split, Examples(["a"] * documents, [("a",)] * documents))
    for split, documents in (("valid", 3), ("test", 5)):
        batch = {"split": split, "says": [0], "examples": [Example("", ("a",))]}
        assert scores.score(Task(), batch, None)["_meteor_sum"] == documents


def test_sums_of_workers_become_means_over_documents() -> None:
    scorers = {name: METRICS[name]() for name in ("meteor", "length")}
    scores = ValidationScores(None, Tokenizer(), scorers)  # type: ignore[arg-type]
    examples = [Example("", ("a cat sleeps",)), Example("", ("no match",))]
    logs = [
        scores.score(Task(), {"split": "valid", "says": [0, 1], "examples": examples}, None),
        scores.score(Task(), {"split": "valid", "says": [0], "examples": examples[:1]}, None),
    ]
    whole = scorers["meteor"].score([Example("a cat sleeps", ("a cat sleeps",))])[0, 0]
    with logged.aggregate() as found:
        scores.reduce_metrics(logs)
        values = found.get_smoothed_values()
    assert values["meteor"] == pytest.approx(2 * whole / 3)
    assert values["words"] == pytest.approx(8 / 3)
    assert "rouge1" not in values

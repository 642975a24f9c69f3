"""What every metric keeps; those that need weights have small random models."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from small_encoders import TEXTS, classifier, save_bert, save_encoder_decoder

from pyramidions.base.errors import UserError
from pyramidions.scoring import FIGURES, METRICS, Example, Metric, MetricOptions, metric_of
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import metrics_of, score_documents

EXAMPLES = [
    Example("a cat sleeps.", ("a dog sleeps. a cat barks.",), "A cat sleeps here. A dog barks in Paris."),
    Example("", ("nothing.",), "Nothing at all."),
    Example("Two cats and 3 dogs.", ("Two cats.", "Three dogs and two cats."), "There were 2 cats and 3 dogs."),
    Example(" \n\u200b", ("Ann saw 5 cats.",), "Ann saw 5 cats in Rome."),
    Example(TEXTS[0], (TEXTS[1],), " ".join(TEXTS)),
]
#: How the figures of several references become one.
ONE_OF_MANY: dict[str, Any] = {
    **dict.fromkeys(("rouge", "meteor", "bertscore", "bleurt", "capitalized"), np.max),
    **dict.fromkeys(("bartscore", "moverscore"), np.mean),
}
LONG = " ".join(TEXTS * 3)
every_metric = pytest.mark.parametrize("name", METRICS.names)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the options of metrics with models."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "embedding_model": str(save_bert(folder / "encoder")),
        "embedding_layer": 2,
        "bartscore_model": save_encoder_decoder(folder / "writer"),
        "bleurt_model": str(classifier(folder / "rater", [""], 64)),
        "entailment_model": str(classifier(folder / "judge", ["contradiction", "neutral", "entailment"], 64)),
        "qa_model": str(save_bert(folder / "reader", "BertForQuestionAnswering", 64)),
        "tagger": str(classifier(folder / "tagger", ["O", "B-PER", "I-PER"], 64, "Token")),
    }


def made(name: str, models: dict[str, Any], examples: Sequence[Example] = EXAMPLES) -> Metric:
    metric = METRICS.build(name, {}, **models)
    metric.fit(examples)
    return metric


def test_no_two_metrics_have_a_name_in_common() -> None:
    assert len(FIGURES) == sum(len(METRICS[name].figures) for name in METRICS.names)
    assert all(metric_of(figure) in METRICS.names for figure in FIGURES)


@every_metric
def test_a_batch_gives_the_figures_of_its_documents_each_finite(
    name: str, models: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = made(name, models)
    alone = np.concatenate([metric.score([example]) for example in EXAMPLES])
    assert metric.signature()
    assert alone.shape == (len(EXAMPLES), len(METRICS[name].figures)) and np.isfinite(alone).all()
    np.testing.assert_allclose(metric.score(EXAMPLES), alone, atol=1e-4)
    # A batch of few tokens is computed in parts.
    monkeypatch.setattr("pyramidions.scoring.encoders.loading.TOKENS", 70)
    np.testing.assert_allclose(metric.score(EXAMPLES), alone, atol=1e-4)


def test_figures_without_a_worst_value_are_those_of_two_models() -> None:
    unbounded = {name for name, figure in FIGURES.items() if figure.better and not figure.bounded}
    assert {metric_of(name) for name in unbounded} == {"bleurt", "bartscore", "bartscore_faithfulness"}
    assert {FIGURES[name].better for name in unbounded} == {"higher"}


@pytest.mark.parametrize(
    "name", sorted({metric_of(name) for name, figure in FIGURES.items() if figure.better and figure.bounded})
)
def test_an_empty_summary_gets_the_worst_of_each_figure(name: str, models: dict[str, Any]) -> None:
    found = made(name, models).score(EXAMPLES)
    judging = [(n, figure) for n, figure in enumerate(METRICS[name].figures.values()) if figure.better]
    for number, figure in judging:
        assert found[1, number] == found[3, number] == (0 if figure.better == "higher" else 100), figure


@pytest.mark.parametrize(("names", "remark"), [
    (["bleurt"], "1 of 2 summaries is empty and gets what the model gives an empty text: BLEURT has no worst value."),
    (["rouge", "bartscore"], "1 of 2 summaries is empty and gets the worst of each figure: 0, or 100 if lower is "
     "better. Figures without a worst value (BARTScore precision, BARTScore recall, BARTScore F) count what the model "
     "gives an empty text."),
])  # fmt: skip
def test_a_remark_says_what_an_empty_summary_gets(names: list[str], remark: str, models: dict[str, Any]) -> None:
    metrics = {name: made(name, models, []) for name in names}
    assert score_documents(Examples(["", "a"], [("a",), ("a",)]), metrics).remarks == (remark,)


@every_metric
def test_line_breaks_make_no_difference(name: str, models: dict[str, Any]) -> None:
    broken = Example("Bees fly.\nAnn\u00a0reads 2.", ("A fox\nflies.",), "Bees\nfly. A fox reads. Ann is in Rome.")
    whole = Example("Bees fly. Ann reads 2.", ("A fox flies.",), "Bees fly. A fox reads. Ann is in Rome.")
    one, other = made(name, models, [*EXAMPLES, whole]).score([broken, whole])
    np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("name", ONE_OF_MANY)
def test_of_several_references_the_best_or_the_mean_counts(name: str, models: dict[str, Any]) -> None:
    summary, references, source = (
        "Lee saw the fox of Oslo.",
        ("Tom saw Oslo.", "Then Ann Bergen saw a fox."),
        "Lee saw Oslo.",
    )
    both = Example(summary, references, source)
    metric = made(name, models, [both, *EXAMPLES])
    alone = metric.score([Example(summary, (reference,), source) for reference in references])
    np.testing.assert_allclose(metric.score([both])[0], ONE_OF_MANY[name](alone, axis=0), atol=1e-4)
    assert (alone[0] != alone[1]).any()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bertscore", ["encoder sha256:", "layer 2", "at most 40 tokens", "best of references", "not rescaled"]),
        ("moverscore", ["encoder sha256:", "layer 2", "idf", "no stop words"]),
        ("bartscore", ["BARTScore", "nats a token", "mean of references", "writer sha256:", "at most 64 tokens"]),
        ("bleurt", ["BLEURT", "best of references", "rater sha256:", "at most 64 tokens"]),
        ("entailment", ["entailment", "judge sha256:", "best of the document's sentences"]),
        ("apes_src", ["blank [MASK]", "answers: reader sha256:", "entities: tagger sha256:"]),
        ("meteor", ["exact and stem, no WordNet"]),
    ],
)
def test_a_signature_names_the_model_and_what_decides(name: str, parts: list[str], models: dict[str, Any]) -> None:
    said = made(name, models).signature().split(" | ")
    assert not [part for part in parts if not any(each.startswith(part) or part in each for each in said)], said


@pytest.mark.parametrize(
    ("name", "remark"),
    [
        ("bertscore", "1 of 2 summaries and 1 of 2 references are longer than the model's 40 tokens and were truncated "
         "(50.0% and 50.0%)."),
        ("bartscore", "2 of 4 pairs of texts are longer than the model reads and were truncated."),
        ("bartscore_faithfulness", "1 of 2 pairs of texts are longer than the model reads and were truncated."),
        ("bleurt", "1 of 2 pairs of texts are longer than the model reads and were truncated."),
        ("entailment", "3 of 4 pairs of a premise and a sentence of a summary are longer than the model reads and were "
         "truncated."),
    ],
)  # fmt: skip
def test_truncated_texts_are_counted_anew_for_each_system(name: str, remark: str, models: dict[str, Any]) -> None:
    unbroken = LONG.replace(".", "")
    examples = [Example(unbroken, (LONG,), " ".join(TEXTS)), Example("Bees fly.", ("Bees.",), "Bees.")]
    metric = made(name, models, examples)
    for _ in range(2):
        metric.fit(examples)
        metric.score(examples)
        assert metric.remarks() == [f"{name}: {remark}"]
    metric.fit(())
    assert metric.remarks() == []


@pytest.mark.parametrize("name", [name for name in METRICS.names if METRICS[name].reads_source])
def test_a_metric_that_reads_documents_refuses_to_do_without(name: str, models: dict[str, Any]) -> None:
    with refused(name):
        score_documents(Examples(["a"], [("a",)]), {name: made(name, models)})


def test_several_metrics_stand_side_by_side() -> None:
    examples = Examples(["a b", "x"], [("a b",), ("y",)])
    one, other = (score_documents(examples, metrics_of([name])) for name in ("rouge", "meteor"))
    both = score_documents(examples, metrics_of(["rouge", "meteor"]))
    assert both.scores.tolist() == np.concatenate([one.scores, other.scores], axis=1).tolist()
    assert both.signatures == (*one.signatures, *other.signatures)
    assert list(both.figures) == [*one.figures, *other.figures]


@pytest.mark.parametrize("names", [["rogue"], [], ["entailment"]])
def test_wrong_names_and_options_are_named(names: list[str], models: dict[str, Any]) -> None:
    options = MetricOptions(entailment_model=models["entailment_model"], entailment_premise="pages")
    with pytest.raises(UserError, match="metric must be|`entailment_premise` must be .*, but is 'pages'"):
        metrics_of(names, options)


def test_the_table_of_the_docs_names_every_metric_with_its_figures() -> None:
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*)\|", text, re.MULTILINE))
    told = {name: re.findall(r"`(\w+)`", figures) for name, figures in rows.items() if name in METRICS.names}
    assert told == {name: list(METRICS[name].figures) for name in METRICS.names} | {"novelty": ["novel1", "novel4"]}


def test_documents_are_read_only_for_metrics_that_compare_with_them() -> None:
    class Documents:
        read = 0

        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> str:
            self.read += 1
            return "a b"

    documents: Any = Documents()
    examples = Examples(["a b", "x"], [("a b",), ("y",)], documents)
    score_documents(examples, metrics_of(["rouge", "meteor"]))
    assert documents.read == 0
    score_documents(examples, metrics_of(["rouge", "coverage"]))
    assert documents.read == 2

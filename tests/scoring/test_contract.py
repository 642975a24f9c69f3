"""What every metric that needs no weights keeps."""

import re
from pathlib import Path

import numpy as np
import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring import FIGURES, METRICS, Example, MetricOptions, metric_of
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import metrics_of, score_documents

WEIGHTLESS = [name for name in METRICS.names if METRICS[name].in_workers]
EXAMPLES = [
    Example("a cat sleeps.", ("a dog sleeps. a cat barks.",), "A cat sleeps here. A dog barks in Paris."),
    Example("", ("nothing.",), "Nothing at all."),
    Example("Two cats and 3 dogs.", ("Two cats.", "Three dogs and two cats."), "There were 2 cats and 3 dogs."),
]


def of(name, examples):
    metric = metrics_of([name])[name]
    metric.fit(examples)
    return metric.score(examples)


def test_no_two_metrics_have_a_name_in_common():
    assert len(FIGURES) == sum(len(METRICS[name].figures) for name in METRICS.names)
    assert all(metric_of(figure) in METRICS.names for figure in FIGURES)


@pytest.mark.parametrize("name", WEIGHTLESS)
def test_a_metric_has_a_finite_figure_for_each_name_and_a_signature(name):
    figures = of(name, EXAMPLES)
    assert figures.shape == (len(EXAMPLES), len(METRICS[name].figures))
    assert np.isfinite(figures).all()
    assert metrics_of([name])[name].signature()


@pytest.mark.parametrize("name", WEIGHTLESS)
def test_a_batch_gives_the_figures_of_its_documents(name):
    assert (of(name, EXAMPLES) == np.concatenate([of(name, [example]) for example in EXAMPLES])).all()


@pytest.mark.parametrize("name", WEIGHTLESS)
def test_an_empty_summary_gets_the_worst_of_each_figure(name):
    figures = dict(zip(METRICS[name].figures, of(name, EXAMPLES)[1], strict=True))
    worst = {"higher": 0, "lower": 100}
    judging = {key: figure.better for key, figure in METRICS[name].figures.items() if figure.better}
    assert all(METRICS[name].figures[key].bounded for key in judging)
    assert {key: figures[key] for key in judging} == {key: worst[better] for key, better in judging.items()}


def test_figures_without_a_worst_value_are_named() -> None:
    unbounded = {name for name, figure in FIGURES.items() if not figure.bounded}
    bartscore = {f"bartscore_{name}" for name in ("faithfulness", "precision", "recall", "f")}
    assert unbounded == {*bartscore, "bleurt"}
    assert {FIGURES[name].better for name in unbounded} == {"higher"}


@pytest.mark.parametrize("name", [name for name in METRICS.names if METRICS[name].reads_source])
def test_a_metric_that_reads_documents_refuses_to_do_without(name):
    with pytest.raises(
        UserError, match=f"The metric {name} compares summaries with their documents, but there are non"
    ):
        score_documents(Examples(["a"], [("a",)]), {name: METRICS[name].__new__(METRICS[name])})


def test_several_metrics_stand_side_by_side():
    examples = Examples(["a b", "x"], [("a b",), ("y",)])
    one, other = (score_documents(examples, metrics_of([name])) for name in ("rouge", "meteor"))
    both = score_documents(examples, metrics_of(["rouge", "meteor"]))
    assert both.scores.tolist() == np.concatenate([one.scores, other.scores], axis=1).tolist()
    assert both.signatures == (*one.signatures, *other.signatures)
    assert list(both.figures) == [*one.figures, *other.figures]


@for_each(
    ("names", "message"),
    [
        (["rogue"], r"A metric must be one of .*rouge.*, but is 'rogue' \(did you mean rouge\?\)\."),
        (["rouge", "rouge"], "Each metric must be given once, but rouge comes twice."),
        ([], "At least one metric must be given."),
    ],
)
def test_bad_names_are_one_sentence(names, message):
    with pytest.raises(UserError, match=message):
        metrics_of(names)


def test_an_option_that_no_metric_takes_is_refused():
    with pytest.raises(UserError, match=r"`wordnet` has no effect: none of the metrics \(rouge, coverage\) takes it\."):
        metrics_of(["rouge", "coverage"], MetricOptions(wordnet="x"))


def test_the_table_of_the_docs_names_every_metric_with_its_figures():
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*)\|", text, re.MULTILINE))
    told = {name: re.findall(r"`(\w+)`", figures) for name, figures in rows.items() if name in METRICS.names}
    expected = {name: list(METRICS[name].figures) for name in METRICS.names}
    assert told.pop("novelty") == ["novel1", "novel4"]
    assert told == {name: figures for name, figures in expected.items() if name != "novelty"}


def test_documents_are_read_only_for_metrics_that_compare_with_them():
    class Documents:
        read = 0

        def __len__(self):
            return 2

        def __getitem__(self, index):
            self.read += 1
            return "a b"

    examples = Examples(["a b", "x"], [("a b",), ("y",)], documents := Documents())
    score_documents(examples, metrics_of(["rouge", "meteor"]))
    assert documents.read == 0
    score_documents(examples, metrics_of(["rouge", "coverage"]))
    assert documents.read == 2

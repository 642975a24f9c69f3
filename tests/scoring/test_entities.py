from collections.abc import Sequence

import pytest

from pyramidions.scoring import Example, Metric
from pyramidions.scoring.metric import Span
from pyramidions.scoring.metrics.entities import Capitalized, Entities

SOURCE = "The United Bank of Norway paid 1,000 euros. Ann Lee sang in Oslo."


class Listed:
    """Takes listed names for entities."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def entities(self, sentences: Sequence[str]) -> list[list[Span]]:
        return [[Span(s.find(name), s.find(name) + len(name)) for name in self._names if name in s] for s in sentences]

    def signature(self) -> str:
        return "listed"


def scored(metric: Metric, prediction: str, *references: str) -> list[float]:
    return list(metric.score([Example(prediction, references, SOURCE)])[0])


def test_a_part_of_a_name_is_found_and_the_whole_is_not() -> None:
    metric = Entities(Listed("Bank of Norway", "Ann Smith", "Bank of Spain", "Isle of Man"))
    summary = "The Bank of Norway. Ann Smith. The Bank of Spain. The Isle of Man."
    # "of" of the last is in the document, but says nothing.
    assert scored(metric, summary, "Nothing.")[:2] == [75, 25]


def test_recall_is_of_the_entities_of_the_reference_in_the_summary() -> None:
    metric = Entities(Listed("Ann Lee", "Oslo"))
    assert scored(metric, "Lee sang.", "Ann Lee sang in Oslo.")[2] == 50
    # A reference without entities is none.
    assert scored(metric, "Lee sang.", "In Oslo.", "Ann Lee sang in Oslo.", "She sang.")[2] == 50


def test_texts_without_entities_are_counted() -> None:
    metric = Entities(Listed("Oslo"))
    examples = [Example("It rained.", ("It rained.",), SOURCE), Example("In Oslo.", ("In Oslo.",), SOURCE)]
    for _ in range(2):
        metric.fit(examples)
        assert metric.score(examples).tolist() == [[100, 100, 100], [100, 100, 100]]
        assert metric.remarks() == [
            "entities: 1 of 2 summaries hold no entity, which counts as a precision of 100.",
            "entities: 1 of 2 documents' references hold no entity, which counts as a recall of 100.",
        ]


@pytest.mark.parametrize(
    ("text", "language", "names"),
    [
        ("Yesterday Ann Lee sang in Oslo.", "en", ["Ann Lee", "Oslo"]),
        ("Oslo is a town. Rain fell on Bergen, Oslo and Rome.", "en", ["Bergen", "Oslo", "Rome"]),
        ("It cost 1,000 euros or 5.5% in Covid-19 times.", "en", ["1,000", "5.5", "Covid-19"]),
        ("“The O'Neill report” of the U.S. is new.", "en", ["O'Neill", "U.S"]),
        # The language says where sentences end.
        ("Er kam am 3. Mai nach Rom.", "de", ["3", "Mai", "Rom"]),
    ],
)
def test_numbers_and_runs_of_capitalized_words_inside_sentences_are_names(
    text: str, language: str, names: list[str]
) -> None:
    metric = Capitalized(language)
    assert metric.names([text]) == [names] and f"language {language}" in metric.signature()


def test_false_numbers_cost_precision() -> None:
    assert scored(Capitalized(), "They paid 2,000 euros in Oslo.", "They paid 1,000 euros in Oslo.") == [50, 50, 50]

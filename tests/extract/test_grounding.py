"""Sentences of a document after which those of a summary are most probable."""

from collections.abc import Sequence

import numpy as np
from tables import for_each

from pyramidions.extract.grounding import grounding

DOCUMENT = ["bees fly", "foxes dig", "bees sleep", "dogs bark"]


def shared_words(pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """A likelihood by hand: minus the share of the second text's words that are not in the first."""
    return np.array([-np.mean([word not in given.split() for word in text.split()]) for given, text in pairs])


@for_each(
    ("summary", "chosen"),
    [
        (["dogs bark", "bees fly"], [3, 0]),  # in the order of the summary
        (["dogs bark", "dogs dig bark"], [3]),  # each once
        (["bees"], [0]),  # of equal ones the first
        (["cats purr"], []),  # none helps
        ([], []),
    ],
)
def test_each_sentence_of_a_summary_chooses_the_one_that_makes_it_most_probable(
    summary: list[str], chosen: list[int]
) -> None:
    assert grounding(DOCUMENT, summary, shared_words) == chosen


def test_a_document_without_sentences_grounds_nothing() -> None:
    assert grounding([], ["dogs bark"], shared_words) == []

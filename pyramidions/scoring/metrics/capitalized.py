"""Numbers and capitalized words of summaries in their documents: what there is without a tagger of entities."""

import re
from collections.abc import Sequence
from typing import ClassVar

from pyramidions.scoring.entity_metric import EntityMetric
from pyramidions.scoring.metric import METRICS, Figure
from pyramidions.text.normalization import SPLITTER, split_sentences

_TOKEN = re.compile(r"\w+(?:[.,:/'’-]\w+)*|[^\w\s]")


@METRICS.register("capitalized")
class Capitalized(EntityMetric):
    """Precision and recall of numbers and capitalized words; see `EntityMetric`. It needs no weights.

    A name is a run of words with a capital letter in front, without the first word of a sentence; or a word with a
    figure in it. Languages that capitalize all nouns, or have no capitals, need `entities`.
    """

    name: ClassVar = "capitalized"
    counted: ClassVar = "number and no capitalized word"
    figures: ClassVar = {
        "capitalized_precision": Figure("precision of numbers and capitalized words"),
        "capitalized_precision_whole": Figure("whole precision of numbers and capitalized words"),
        "capitalized_recall": Figure("recall of numbers and capitalized words"),
    }

    def names(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the numbers and runs of capitalized words in texts."""
        return [[name for sentence in split_sentences(text) for name in _names(sentence)] for text in texts]

    def signature(self) -> str:
        """Say what is counted."""
        return (
            f"numbers and capitalized words | sentences: {SPLITTER} | found if a word of it is; whole: word by word | "
            "any case"
        )


def _names(sentence: str) -> list[str]:
    names: list[str] = []
    goes_on = False
    is_first = True
    for token in _TOKEN.findall(sentence):
        has_figure = any(character.isdigit() for character in token)
        is_capitalized = token[0].isupper() and not is_first and not has_figure
        if is_capitalized and goes_on:
            names[-1] += f" {token}"
        elif is_capitalized or has_figure:
            names.append(token)
        goes_on = is_capitalized
        is_first = is_first and not token[0].isalnum()
    return names

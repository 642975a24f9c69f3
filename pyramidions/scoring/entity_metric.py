"""How many names in a summary its document holds."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from pyramidions.scoring.metric import Example, Metric
from pyramidions.scoring.name_words import words
from pyramidions.text.normalization import normalize

# That say nothing about whether a name was found.
_FUNCTION_WORDS = frozenset(["a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"])


class EntityMetric(Metric):
    """Precision of the names in a summary by its document, and recall of those in the reference; 0 to 100.

    Figures, in this order: the share of the summary's names of which some word, "of" and the like aside, is in the
    document (Nan et al. 2021, precision-source: "Obama" for "Barack Obama"); the share of those that are in the
    document as they are, word by word; and the share of the reference's names that are in the summary in the first
    way (recall-target), of several references the highest. Case makes no difference; each mention counts.

    A summary that is not empty and names nothing has a precision of 100, as nothing in it is false; a reference that
    names nothing has a recall of 100. Remarks say how many there were.
    """

    reads_source: ClassVar[bool] = True
    # Counts of other processes would be lost.
    in_workers: ClassVar[bool] = False
    batch_size: ClassVar[int] = 32
    #: As users call it, and what it counts.
    name: ClassVar[str]
    counted: ClassVar[str]

    def __init__(self) -> None:
        self._documents = self._nameless_summaries = self._nameless_references = 0

    def fit(self, examples: Iterable[Example]) -> None:
        """Count anew which texts name nothing."""
        self._documents = self._nameless_summaries = self._nameless_references = 0

    @abstractmethod
    def names(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the names in texts that are normalised."""

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return (documents, 3)."""
        predictions = [normalize(example.prediction) for example in examples]
        references = [[normalize(reference) for reference in example.references] for example in examples]
        found = iter(self.names([*predictions, *(text for texts in references for text in texts)]))
        named = [[words(name) for name in next(found)] for _ in examples]
        expected = [[[words(name) for name in next(found)] for _ in texts] for texts in references]
        rows = [
            self._row(prediction, words(normalize(example.source or "")), of_summary, of_references)
            for prediction, example, of_summary, of_references in zip(
                predictions, examples, named, expected, strict=True
            )
        ]
        return 100 * np.array(rows)

    def _row(
        self, prediction: str, source: list[str], named: list[list[str]], expected: list[list[list[str]]]
    ) -> list[float]:
        self._documents += 1
        if not prediction:
            return [0.0, 0.0, 0.0]
        self._nameless_summaries += not named
        self._nameless_references += not any(expected)
        in_source, in_summary = frozenset(source), frozenset(words(prediction))
        text = _joined(source)
        return [
            _share([_is_known(name, in_source) for name in named]),
            _share([_joined(name) in text for name in named]),
            max((_share([_is_known(name, in_summary) for name in names]) for names in expected if names), default=1.0),
        ]

    def remarks(self) -> list[str]:
        """Say how many texts name nothing."""
        found = []
        for nameless, whose, figure in (
            (self._nameless_summaries, "summaries", "precision"),
            (self._nameless_references, "documents' references", "recall"),
        ):
            if nameless:
                found.append(
                    f"{self.name}: {nameless:,} of {self._documents:,} {whose} hold no {self.counted}, which counts as "
                    f"a {figure} of 100."
                )
        return found


def _joined(text: Sequence[str]) -> str:
    return f" {' '.join(text)} "


def _is_known(name: Sequence[str], among: frozenset[str]) -> bool:
    return any(word in among for word in name if word not in _FUNCTION_WORDS)


def _share(are: Sequence[bool]) -> float:
    return sum(are) / len(are) if are else 1.0

"""What a summary says again."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.text.language import Language
from pyramidions.text.words import WORDS, ngrams, words_and_marks


@METRICS.register("repetition")
class Repetition(Metric):
    """The share of trigrams, and of sentences, that came before in the summary, 0 to 100.

    An empty summary has 100: saying nothing is no way to repeat less.

    Args:
        language: as in `Language`; determines the sentences.

    Raises:
        UserError: an unknown language.
    """

    figures: ClassVar = {
        "repeated3": Figure("Repeated 3-grams", "lower"),
        "repeated_sentences": Figure("Repeated sentences", "lower"),
    }

    def __init__(self, language: str = "en") -> None:
        self._language = Language(language)

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return (documents, 2)."""
        return np.array([self._of(example.prediction) for example in examples])

    def _of(self, summary: str) -> list[float]:
        sentences = [sentence.lower() for sentence in self._language.sentences(summary)]
        if not sentences:
            return [100.0, 100.0]
        return [_repeated(ngrams(words_and_marks(summary), 3)), _repeated(sentences)]

    def signature(self) -> str:
        """Say what a word is."""
        return f"repeated 3-grams of {WORDS}"


def _repeated(parts: Sequence[object]) -> float:
    return 100 * (1 - len(set(parts)) / len(parts)) if parts else 0.0

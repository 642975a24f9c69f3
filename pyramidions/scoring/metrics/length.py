"""How long a summary is."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.text.language import Language
from pyramidions.text.normalization import SPLITTER, normalize


@METRICS.register("length")
class Length(Metric):
    """Words, sentences, and words as a multiple of the references' mean.

    Words are those of `Language`: runs of letters and digits, and characters where a language puts no spaces.

    Args:
        language: as in `Language`, with the next one.
        tokenization: of words.

    Raises:
        UserError: see `Language`.
    """

    figures: ClassVar = {
        "words": Figure("Words", None),
        "sentences": Figure("Sentences", None),
        "length_ratio": Figure("Words / reference", None),
    }

    def __init__(self, language: str = "en", tokenization: str | None = None) -> None:
        self._language = Language(language, tokenization)

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return (documents, 3)."""
        return np.array([self._of(example) for example in examples])

    def _of(self, example: Example) -> list[float]:
        words = self._words(example.prediction)
        expected = np.mean([self._words(reference) for reference in example.references])
        ratio = words / float(expected) if expected else 0.0
        return [words, len(self._language.sentences(example.prediction)), ratio]

    def _words(self, text: str) -> int:
        return len(self._language.words(normalize(text)))

    def signature(self) -> str:
        """Say what words and sentences are."""
        return f"length in {self._language.tokenization} | sentences: {SPLITTER}"

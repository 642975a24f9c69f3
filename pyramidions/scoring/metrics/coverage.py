"""What a summary copied (Grusky et al., 2018): coverage, density and compression."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.text.fragments import fragments
from pyramidions.text.words import WORDS, words_and_marks


@METRICS.register("coverage")
class Coverage(Metric):
    """The share of words in fragments of the document, their mean squared length, and how much shorter a summary is.

    Of the greedy longest common fragments f of a summary S and its document A: coverage is the sum of |f| over |S|,
    density that of |f|² over |S|, compression |A| over |S|; all of an empty summary are 0. They describe, and do not
    judge.
    """

    figures: ClassVar = {
        "coverage": Figure("Coverage", None),
        "density": Figure("Density", None),
        "compression": Figure("Compression", None),
    }
    reads_source: ClassVar = True

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return (documents, 3)."""
        return np.array([_of(example) for example in examples])

    def signature(self) -> str:
        """Say what a word is."""
        return f"fragments of {WORDS}"


def _of(example: Example) -> list[float]:
    summary, document = words_and_marks(example.prediction), words_and_marks(example.source or "")
    if not summary:
        return [0.0, 0.0, 0.0]
    lengths = [fragment.length for fragment in fragments(summary, document)]
    squares = sum(length * length for length in lengths)
    return [sum(lengths) / len(summary), squares / len(summary), len(document) / len(summary)]

"""What a summary says in words of its own (See et al., 2017, figure 6)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.text.words import WORDS, ngrams, words_and_marks

_LENGTHS = (1, 2, 3, 4)


@METRICS.register("novelty")
class Novelty(Metric):
    """The share of a summary's distinct n-grams that its document lacks, 0 to 100, for n from 1 to 4.

    A summary of fewer than n words has 0. The figures describe, and do not judge: new words may be wrong.
    """

    figures: ClassVar = {f"novel{n}": Figure(f"Novel {n}-grams", None) for n in _LENGTHS}
    reads_source: ClassVar = True

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return (documents, 4)."""
        return np.array([_of(example) for example in examples])

    def signature(self) -> str:
        """Say what a word is."""
        return f"novel n-grams, distinct, of {WORDS}"


def _of(example: Example) -> list[float]:
    summary, document = words_and_marks(example.prediction), words_and_marks(example.source or "")
    shares = []
    for n in _LENGTHS:
        ours = set(ngrams(summary, n))
        shares.append(100 * len(ours.difference(ngrams(document, n))) / len(ours) if ours else 0.0)
    return shares

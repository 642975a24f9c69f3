"""Metrics of the words of a summary: how many there are, and how many are copied, new or repeated."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.text.fragments import fragments
from pyramidions.text.language import Language
from pyramidions.text.normalization import SPLITTER
from pyramidions.text.words import WORDS, ngrams, words_and_marks

_LENGTHS = (1, 2, 3, 4)  # of n-grams


@METRICS.register("coverage")
class Coverage(Metric):
    """What a summary copied (Grusky et al., 2018): coverage, density and compression.

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

    def of(self, example: Example) -> list[float]:
        summary, document = words_and_marks(example.prediction), words_and_marks(example.source or "")
        if not summary:
            return [0.0, 0.0, 0.0]
        lengths = [fragment.length for fragment in fragments(summary, document)]
        squares = sum(length * length for length in lengths)
        return [sum(lengths) / len(summary), squares / len(summary), len(document) / len(summary)]

    def signature(self) -> str:
        return f"fragments of {WORDS}"


@METRICS.register("novelty")
class Novelty(Metric):
    """The share of a summary's distinct n-grams that its document lacks, 0 to 100 (See et al., 2017, figure 6).

    A summary of fewer than n words has 0. The figures describe, and do not judge: new words may be wrong.
    """

    figures: ClassVar = {f"novel{n}": Figure(f"Novel {n}-grams", None) for n in _LENGTHS}
    reads_source: ClassVar = True

    def of(self, example: Example) -> list[float]:
        summary, document = words_and_marks(example.prediction), words_and_marks(example.source or "")
        distinct = [(n, set(ngrams(summary, n))) for n in _LENGTHS]
        return [100 * len(own.difference(ngrams(document, n))) / len(own) if own else 0.0 for n, own in distinct]

    def signature(self) -> str:
        return f"novel n-grams, distinct, of {WORDS}"


@METRICS.register("repetition")
class Repetition(Metric):
    """The share of trigrams, and of sentences, that came before in the summary, 0 to 100.

    An empty summary has 100: saying nothing is no way to repeat less.
    """

    figures: ClassVar = {
        "repeated3": Figure("Repeated 3-grams", "lower"),
        "repeated_sentences": Figure("Repeated sentences", "lower"),
    }

    def __init__(self, language: str = "en") -> None:
        self._language = Language(language)

    def of(self, example: Example) -> list[float]:
        sentences = [sentence.lower() for sentence in self._language.sentences(example.prediction)]
        if not sentences:
            return [100.0, 100.0]
        parts: tuple[Sequence[object], ...] = (ngrams(words_and_marks(example.prediction), 3), sentences)
        return [100 * (1 - len(set(each)) / len(each)) if each else 0.0 for each in parts]

    def signature(self) -> str:
        return f"repeated 3-grams of {WORDS} | sentences: {SPLITTER}, language {self._language.code}"


@METRICS.register("length")
class Length(Metric):
    """Words, sentences, and words as a multiple of the references' mean.

    Words are those of `Language`: runs of letters and digits, and characters where a language puts no spaces.
    """

    figures: ClassVar = {
        "words": Figure("Words", None),
        "sentences": Figure("Sentences", None),
        "length_ratio": Figure("Words / reference", None),
    }

    def __init__(self, language: str = "en", tokenization: str | None = None) -> None:
        self._language = Language(language, tokenization)

    def of(self, example: Example) -> list[float]:
        words, *expected = (len(self._language.words(text)) for text in (example.prediction, *example.references))
        ratio = words / float(np.mean(expected)) if any(expected) else 0.0
        return [words, len(self._language.sentences(example.prediction)), ratio]

    def signature(self) -> str:
        return f"length in {self._language.tokenization} | sentences: {SPLITTER}, language {self._language.code}"

"""The oracle: sentences chosen by the reference summary, as labels and as a bound of what extraction can reach."""

from collections.abc import Sequence

import numpy as np

from pyramidions.base.arguments import Count, checked
from pyramidions.extract.core import Ranker
from pyramidions.extract.fitness import fit_for_summary
from pyramidions.text.language import ENGLISH, Language
from pyramidions.text.outline import Outline
from pyramidions.text.words import count_words


class Oracle(Ranker):
    """Ranks the sentences that are fit for an extract in the order in which `oracle` chooses them; others have -inf."""

    @checked
    def __init__(self, reference: str, words: Count | None = None) -> None:
        self.reference = reference
        self.words = words

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        scores = np.full(len(outline.texts), -np.inf)
        # Others would be left out of the extract, and leave room that the oracle did not know of.
        fit = np.flatnonzero(np.isfinite(fit_for_summary(outline, np.zeros(len(scores)))))
        texts = [outline.texts[place] for place in fit.tolist()]
        chosen = oracle(texts, self.reference, outline.language, words=self.words)
        scores[fit[chosen]] = np.arange(len(chosen), 0, -1)
        return scores


def oracle(sentences: Sequence[str], reference: str, language: str = ENGLISH, *, words: int | None = None) -> list[int]:
    """Choose sentences greedily: each raises the sum of ROUGE-1 and ROUGE-2 (F1) most (Nallapati et al. 2017).

    Words are those of `Language`, without stemming; no bigram crosses sentences of the document. Of equal gains the
    earlier sentence is taken. It ends where no sentence is a gain, or fits into ``words`` as `count_words` counts them.
    Indices are in the order of choice.
    """
    grams = _overlaps(sentences, reference, language)
    lengths = np.array([count_words(sentence) for sentence in sentences], dtype=np.int64)
    left = np.inf if words is None else words
    chosen: list[int] = []
    open_ = np.ones(len(sentences), dtype=bool)
    score = 0.0
    while (candidates := np.flatnonzero(open_ & (lengths <= left))).size:
        scores = np.sum([overlap.f1_with()[candidates] for overlap in grams], axis=0)
        best = int(np.argmax(scores))
        if scores[best] <= score + 1e-12:
            break
        score = float(scores[best])
        index = int(candidates[best])
        chosen.append(index)
        open_[index] = False
        left -= lengths[index]
        for overlap in grams:
            overlap.add(index)
    return chosen


def covering(sentences: Sequence[str], reference: str, language: str = ENGLISH) -> list[int]:
    """Choose sentences greedily: each raises the ROUGE-2 recall of a reference most (Huang et al. 2021, section 5.2).

    Words, bigrams, ties, order and end are as in `oracle`.
    """
    _, bigrams = _overlaps(sentences, reference, language)
    chosen: list[int] = []
    while (gained := bigrams.gained()).any():
        chosen.append(int(np.argmax(gained)))
        bigrams.add(chosen[-1])
    return chosen


def _overlaps(sentences: Sequence[str], reference: str, language: str) -> "tuple[Overlap, Overlap]":
    """Return what sentences share with a reference, in words and in bigrams."""
    numbers: dict[str, int] = {}
    words_of = Language(language).words
    texts = [[numbers.setdefault(word, len(numbers)) for word in words_of(text)] for text in (*sentences, reference)]
    overlaps = []
    for n in (1, 2):
        grams = [_grams(words, n, len(numbers)) for words in texts]
        sizes = [len(each) for each in grams[:-1]]
        keys = np.concatenate(grams[:-1]) if sizes else np.zeros(0, dtype=np.int64)
        overlaps.append(Overlap(keys, np.repeat(np.arange(len(sizes)), sizes), len(sizes), grams[-1]))
    return overlaps[0], overlaps[1]


def _grams(words: list[int], n: int, number: int) -> np.ndarray:
    """Return the n-grams of numbered words, for n of 1 or 2, as numbers."""
    numbers = np.array(words, dtype=np.int64)
    return numbers if n == 1 else numbers[:-1] * number + numbers[1:]


class Overlap:
    """Counts the n-grams that chosen sentences share with a reference.

    Args:
        keys: (n-grams,): a number for each n-gram of all sentences, by sentence.
        sentence: (n-grams,): the sentence of each.
        number: of sentences.
        expected: (n-grams of the reference,): their numbers.
    """

    def __init__(self, keys: np.ndarray, sentence: np.ndarray, number: int, expected: np.ndarray) -> None:
        known, self._expected = np.unique(expected, return_counts=True)
        self.total = len(expected)
        self._sizes = np.bincount(sentence, minlength=number)
        column = np.searchsorted(known, keys)
        shared = known[np.minimum(column, len(known) - 1)] == keys if len(known) else np.zeros(len(keys), dtype=bool)
        # One entry for each pair of a sentence and an n-gram of the reference, by sentence.
        pairs, self._counts = np.unique(sentence[shared] * len(known) + column[shared], return_counts=True)
        self._rows, self._columns = np.divmod(pairs, max(len(known), 1))
        self._chosen = np.zeros(len(known), dtype=np.int64)
        self._size = 0

    def gained(self) -> np.ndarray:
        """Return how many more n-grams of the reference are found with one more sentence, for each: (sentences,)."""
        missing = np.maximum(self._expected - self._chosen, 0)
        # The gain of each entry is clipped at what the reference still lacks.
        gains = np.minimum(self._counts, missing[self._columns])
        return np.bincount(self._rows, gains, minlength=len(self._sizes)).astype(np.int64)

    def f1_with(self) -> np.ndarray:
        """Return the F1 of the chosen sentences with one more, for each: (sentences,)."""
        if not self.total:
            return np.zeros(len(self._sizes))
        hits = np.minimum(self._chosen, self._expected).sum() + self.gained()
        return 2 * hits / (self._size + self._sizes + self.total)

    def f1(self) -> float:
        """Return the F1 of the chosen sentences."""
        hits = int(np.minimum(self._chosen, self._expected).sum())
        return 2 * hits / max(self._size + self.total, 1)

    def add(self, sentence: int) -> None:
        """Choose a sentence."""
        first, stop = np.searchsorted(self._rows, [sentence, sentence + 1])
        self._chosen[self._columns[first:stop]] += self._counts[first:stop]
        self._size += int(self._sizes[sentence])

"""The oracle: sentences chosen by the reference summary, as labels and as a bound of what extraction can reach."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pyramidions.base.arguments import Count, checked
from pyramidions.extract.core import Ranker
from pyramidions.text.outline import Outline
from pyramidions.text.overlap import words_of
from pyramidions.text.words import ngrams


class Oracle(Ranker):
    """Ranks the sentences in the order in which `oracle` chooses them; others have -inf.

    Args:
        reference: the summary of the document.
        words: most words of all chosen sentences; None for any number.
    """

    @checked
    def __init__(self, reference: str, words: Count | None = None) -> None:
        self.reference = reference
        self.words = words

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        sentences = outline.texts
        scores = np.full(len(sentences), -np.inf)
        chosen = oracle(sentences, self.reference, words=self.words)
        scores[chosen] = np.arange(len(chosen), 0, -1)
        return scores


def oracle(sentences: Sequence[str], reference: str, *, words: int | None = None) -> list[int]:
    """Choose sentences greedily: each raises the sum of ROUGE-1 and ROUGE-2 (F1) most (Nallapati et al. 2017).

    Words are runs of a-z and 0-9 in lower case, without stemming; no bigram crosses sentences. Of equal gains the
    earlier sentence is taken. It ends where no sentence is a gain.

    Args:
        sentences: of the document.
        reference: its summary.
        words: most words of all chosen sentences, counted between spaces; None for any number.

    Returns:
        Their indices, in the order of choice.
    """
    grams = [_Overlap(sentences, reference, n) for n in (1, 2)]
    lengths = np.array([len(sentence.split()) for sentence in sentences], dtype=np.int64)
    left = np.inf if words is None else words
    chosen: list[int] = []
    open_ = np.ones(len(sentences), dtype=bool)
    score = 0.0
    while (candidates := np.flatnonzero(open_ & (lengths <= left))).size:
        scores = np.sum([overlap.f1_with(candidates) for overlap in grams], axis=0)
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


def covering(sentences: Sequence[str], reference: str) -> list[int]:
    """Choose sentences greedily: each raises the ROUGE-2 recall of a reference most (Huang et al. 2021, section 5.2).

    Words, bigrams, ties and the end are as in `oracle`.

    Args:
        sentences: of the document.
        reference: its summary.

    Returns:
        Their indices, in the order of choice.
    """
    bigrams = _Overlap(sentences, reference, 2)
    everything = np.arange(len(sentences))
    chosen: list[int] = []
    while everything.size and (gained := bigrams.gained_with(everything)).any():
        chosen.append(int(np.argmax(gained)))
        bigrams.add(chosen[-1])
    return chosen


class _Overlap:
    """Counts the n-grams that chosen sentences share with a reference.

    Args:
        sentences: of the document.
        reference: the summary.
        n: words of an n-gram.
    """

    def __init__(self, sentences: Sequence[str], reference: str, n: int) -> None:
        expected = Counter(ngrams(words_of(reference), n))
        column = {gram: number for number, gram in enumerate(expected)}
        self._expected = np.array(list(expected.values()), dtype=np.int32)
        self._total = int(self._expected.sum())
        self._rows: list[tuple[list[int], list[int]]] = []  # columns and counts of each sentence
        self._sizes = np.zeros(len(sentences), dtype=np.int64)
        for index, sentence in enumerate(sentences):
            found = Counter(ngrams(words_of(sentence), n))
            self._sizes[index] = found.total()
            shared = {column[gram]: count for gram, count in found.items() if gram in column}
            self._rows.append((list(shared), list(shared.values())))
        # Counts of all sentences, one after the other.
        self._starts = np.cumsum([0, *(len(columns) for columns, _ in self._rows)])
        self._columns = np.array([c for columns, _ in self._rows for c in columns], dtype=np.int64)
        self._counts = np.array([c for _, counts in self._rows for c in counts], dtype=np.int32)
        self._chosen = np.zeros(len(expected), dtype=np.int32)
        self._size = 0

    def f1_with(self, candidates: np.ndarray) -> np.ndarray:
        """Return the F1 of the chosen sentences with one more, for each candidate."""
        if not self._total:
            return np.zeros(len(candidates))
        hits = np.minimum(self._chosen, self._expected).sum() + self.gained_with(candidates)
        return 2 * hits / (self._size + self._sizes[candidates] + self._total)

    def gained_with(self, candidates: np.ndarray) -> np.ndarray:
        """Return how many more n-grams of the reference are found with one more sentence, for each of several."""
        missing = self._expected - np.minimum(self._chosen, self._expected)
        # The gain of each entry is clipped at what the reference still lacks.
        gains = np.minimum(self._counts, missing[self._columns])
        summed = np.concatenate([[0], np.cumsum(gains)])
        gained: np.ndarray = (summed[self._starts[1:]] - summed[self._starts[:-1]])[candidates]
        return gained

    def add(self, index: int) -> None:
        """Choose a sentence."""
        columns, counts = self._rows[index]
        self._chosen[columns] += np.array(counts, dtype=np.int32)
        self._size += int(self._sizes[index])

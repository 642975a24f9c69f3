"""Counts the n-grams that sentences share with a reference, for ROUGE-1 and ROUGE-2."""

import numpy as np


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
        found: np.ndarray = 2 * hits / (self._size + self._sizes + self.total)
        return found

    def f1(self) -> float:
        """Return the F1 of the chosen sentences."""
        hits = int(np.minimum(self._chosen, self._expected).sum())
        return 2 * hits / max(self._size + self.total, 1)

    def add(self, sentence: int) -> None:
        """Choose a sentence."""
        first, stop = np.searchsorted(self._rows, [sentence, sentence + 1])
        self._chosen[self._columns[first:stop]] += self._counts[first:stop]
        self._size += int(self._sizes[sentence])

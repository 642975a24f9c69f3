"""Chooses sentences one after another; by default those that cover wanted concepts: budgeted maximum coverage."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pyramidions.extract.selection import Budget


class Wanted(NamedTuple):
    """Concepts that a summary should hold."""

    weights: np.ndarray  # (concepts,), at least 0
    # concept, sentence: (pairs,): all pairs of a concept and a sentence that has it, by sentence.
    concept: np.ndarray
    sentence: np.ndarray

    def of(self, sentence: int) -> np.ndarray:
        """Return the concepts of a sentence."""
        first, stop = np.searchsorted(self.sentence, [sentence, sentence + 1])
        return self.concept[first:stop]


def _best(rates: np.ndarray) -> int:
    return int(np.argmax(rates))


class Choice(ABC):
    """The sentences that were chosen so far, and the current value of the others."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = np.maximum(lengths, 1)
        self.chosen: list[int] = []

    @abstractmethod
    def rates(self) -> np.ndarray:
        """Return what each sentence is worth for its length: (sentences,); one of 0 or less is never chosen."""

    def take(self, sentence: int) -> None:
        """Choose a sentence."""
        self.chosen.append(sentence)

    def fill(self, budget: Budget, pick: Callable[[np.ndarray], int] = _best) -> None:
        """Choose more sentences that fit, until none is worth anything; if not even one fits, one alone.

        Of all sentences, ``pick`` returns the next, by the `rates` of those that fit and 0 for the others; by default
        it is the best, of equal ones the earlier.
        """
        left = np.inf if budget.words is None else budget.words - int(self.lengths[self.chosen].sum())
        most = len(self.lengths) if budget.sentences is None else budget.sentences
        while len(self.chosen) < most:
            rates = self.rates()
            fits = self.lengths <= left
            if not self.chosen and not fits[rates > 0].any():
                fits[:] = True
            rates = np.where(fits, rates, 0.0)
            if rates.max(initial=0) <= 0:
                break
            self.take(pick(rates))
            left -= int(self.lengths[self.chosen[-1]])


class Cover(Choice):
    """Chooses the sentence with the most weight of uncovered concepts for its length.

    The greedy choice by gain over length is that of Khuller, Moss and Naor (1999); Gillick and Favre (2009) summarize
    by it. A gain is multiplied by the sentence's ``bonus``, (sentences,), and divided by this power of its length; a
    sentence of bonus 0 is never chosen.
    """

    def __init__(self, wanted: Wanted, lengths: np.ndarray, bonus: np.ndarray, power: float) -> None:
        super().__init__(lengths)
        self.wanted = wanted
        #: (concepts,): weights of those that are not covered yet.
        self.left = wanted.weights.astype(np.float64)
        self._factors = bonus / self.lengths**power
        #: (sentences,): what each is worth before any is chosen.
        self.first_rates = self.rates()

    def rates(self) -> np.ndarray:
        wanted = self.wanted
        gains = np.bincount(wanted.sentence, self.left[wanted.concept], minlength=len(self.lengths))
        return gains * self._factors

    def take(self, sentence: int) -> None:
        super().take(sentence)
        self.left[self.wanted.of(sentence)] = 0

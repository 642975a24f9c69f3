"""Selects sentences that cover wanted concepts: budgeted maximum coverage."""

from typing import NamedTuple

import numpy as np

from pyramidions.extract.selection import Budget


class Wanted(NamedTuple):
    """Concepts that a summary should hold.

    Attributes:
        weights: (concepts,), at least 0.
        concept, sentence: (pairs,): all pairs of a concept and a sentence that has it, by sentence.
    """

    weights: np.ndarray
    concept: np.ndarray
    sentence: np.ndarray


class Cover(NamedTuple):
    """Sentences that cover concepts.

    Attributes:
        chosen: in the order of choice.
        covered: of each of them, the concepts that none before it covers.
    """

    chosen: list[int]
    covered: list[np.ndarray]


def cover(wanted: Wanted, lengths: np.ndarray, bonus: np.ndarray, budget: Budget, power: float) -> Cover:
    """Choose greedily the sentence with the most weight of uncovered concepts for its length.

    The greedy choice by gain over length is that of Khuller, Moss and Naor (1999); Gillick and Favre (2009) summarize
    by it. Of equal sentences the earlier one is chosen. It ends where no sentence that fits is a gain.

    Args:
        wanted: the concepts.
        lengths: (sentences,): words of each.
        bonus: (sentences,): what a gain is multiplied by; a sentence of 0 is never chosen.
        budget: of the selection. If not even one sentence fits, the best is chosen alone.
        power: of the length that divides a gain.
    """
    number = len(lengths)
    left = np.inf if budget.words is None else budget.words
    most = number if budget.sentences is None else budget.sentences
    weights, rates = wanted.weights.astype(np.float64), bonus / np.maximum(lengths, 1) ** power
    found = Cover([], [])
    while len(found.chosen) < most:
        gains = np.bincount(wanted.sentence, weights[wanted.concept], minlength=number) * rates
        fits = lengths <= left
        if not found.chosen and not fits[gains > 0].any():
            fits[:] = True
        gains[~fits] = 0
        best = int(np.argmax(gains)) if number else 0
        if not number or gains[best] <= 0:
            break
        held = wanted.concept[np.searchsorted(wanted.sentence, best) : np.searchsorted(wanted.sentence, best, "right")]
        found.chosen.append(best)
        found.covered.append(held[weights[held] > 0])
        weights[held] = 0
        left -= lengths[best]
    return found

"""Chooses sentences by a policy: learned trees that say which one comes next, given those that were chosen."""

import numpy as np

from pyramidions.extract.concepts.coverage import Cover
from pyramidions.extract.concepts.model import POWER, WantedConcepts, bonus_of
from pyramidions.extract.concepts.paper import Paper
from pyramidions.extract.concepts.trees import Trees


class Policed(Cover):
    """Chooses the sentence that trees rate highest, given those that were chosen: their history (Gu et al. 2022).

    Args:
        paper: the document, of at least one sentence.
        wanted: its concepts.
        trees: rate the rows of `features`, of `STEP_FEATURES`; None for a choice by coverage.
    """

    def __init__(self, paper: Paper, wanted: WantedConcepts, trees: Trees | None = None) -> None:
        weighed = wanted.weighed()
        super().__init__(weighed, paper.lengths, bonus_of(paper), POWER)
        self._trees, self._sections, self._fit = trees, paper.sections, super().rates() > 0
        # Words come before pairs.
        self._are_words = weighed.concept < len(wanted.chances[0])
        self._pairs_of = weighed.concept[~self._are_words], weighed.sentence[~self._are_words]
        self._words_of = weighed.concept[self._are_words], weighed.sentence[self._are_words]
        self._whole = self._sums()
        self._known = self._of_document(paper)

    def rates(self) -> np.ndarray:
        """Return what the trees expect of each sentence; of one that is chosen, unfit, or covers nothing, 0."""
        if self._trees is None:
            return super().rates()
        open_ = self._fit.copy()
        open_[self.chosen] = False
        rates = np.zeros(len(open_))
        # A sentence may add next to nothing, but as long as it fits it does not harm.
        rates[open_] = np.maximum(self._trees.numbers(self.features()[open_]), 1e-9)
        return rates

    def features(self) -> np.ndarray:
        """Return what is known of each sentence now: (sentences, `STEP_FEATURES`), float32."""
        words, pairs = self._sums()
        rates = super().rates()
        best = float(rates.max(initial=0))
        taken = np.zeros(len(rates))
        taken[self.chosen] = 1
        beside = np.pad(taken, 1)
        now = [
            *(words, pairs, words / np.maximum(self._whole[0], 1e-9), pairs / np.maximum(self._whole[1], 1e-9)),
            *(rates, np.full(len(rates), best), rates / max(best, 1e-9)),
            np.full(len(rates), len(self.chosen)),
            *(beside[:-2], beside[2:], np.bincount(self._sections, taken)[self._sections]),
        ]
        return np.column_stack([self._known, *now]).astype(np.float32)

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of words and of pairs that each sentence would cover."""
        number = len(self.lengths)
        words, pairs = (
            np.bincount(sentence, self.left[concept], minlength=number)
            for concept, sentence in (self._words_of, self._pairs_of)
        )
        return words, pairs

    def _of_document(self, paper: Paper) -> np.ndarray:
        """Return what does not change: (sentences, features)."""
        number, sections = len(self.lengths), paper.sections
        place, rates = np.arange(number), super().rates()
        words, pairs = self._whole
        counts = [np.bincount(sentence, minlength=number) for _, sentence in (self._words_of, self._pairs_of)]
        surest = np.zeros(number)
        np.maximum.at(surest, self._pairs_of[1], self.left[self._pairs_of[0]])
        in_section = place - np.searchsorted(sections, sections)
        in_headings = np.bincount(paper.sentence, np.isin(paper.words.hashes, paper.headings), minlength=number)
        beside = np.pad(rates, 2)
        of_all = [number, self.lengths.sum(), sections[-1] + 1, words.sum(), pairs.sum()]
        known = [
            *(words, pairs, words / np.maximum(counts[0], 1), pairs / np.maximum(counts[1], 1), surest),
            *(self.lengths, in_headings / self.lengths, paper.centrality, rates, np.argsort(np.argsort(-rates))),
            *(beside[1:-3] + beside[3:-1], beside[:-4] + beside[4:]),
            *(place, number - place, place / number, in_section, in_section / np.bincount(sections)[sections]),
            *(sections, sections / (sections[-1] + 1), paper.kinds[sections]),
            *(np.full(number, value) for value in of_all),
        ]
        return np.column_stack(known)


#: Features of a sentence, as many as `Policed.features` has.
STEP_FEATURES = 36

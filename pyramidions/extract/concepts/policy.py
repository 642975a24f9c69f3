"""Chooses sentences by a policy: learned trees that say which one comes next, given those that were chosen."""

import numpy as np

from pyramidions.extract.concepts.coverage import Choice, Cover
from pyramidions.extract.concepts.model import WantedConcepts
from pyramidions.extract.concepts.paper import Paper
from pyramidions.extract.concepts.trees import Trees

_FIXED = """
    all_words all_pairs mean_word mean_pair best_pair length in_headings centrality coverage coverage_place beside
    further place from_end share_before place_in_section share_of_section section share_of_sections kind
    sentences words sections expected_words expected_pairs
""".split()  # noqa: SIM905
_CHANGING = """
    left_words left_pairs share_of_words share_of_pairs left_coverage best_coverage share_of_best
    chosen chosen_before chosen_behind chosen_in_section
""".split()  # noqa: SIM905
#: Features of a sentence, last those that change with a choice; a model's trees know them by their order.
FEATURE_NAMES = _FIXED + _CHANGING


class History:
    """What is known of each sentence of a document, given those that were chosen (MemSum, Gu et al. 2022)."""

    def __init__(self, paper: Paper, wanted: WantedConcepts, cover: Cover) -> None:
        self._cover, self._sections = cover, paper.sections
        weighed = cover.wanted
        # Words come before pairs.
        words = weighed.concept < len(wanted.chances[0])
        self._words = weighed.concept[words], weighed.sentence[words]
        self._pairs = weighed.concept[~words], weighed.sentence[~words]
        self._whole = self._left()
        #: (sentences, features), float32: the first features, which do not change.
        self.fixed = _columns(self._of_document(paper), _FIXED)

    def features(self) -> np.ndarray:
        """Return the features of each sentence now: (sentences, features), float32, in the order of `FEATURE_NAMES`."""
        return np.column_stack([self.fixed, self.changing()])

    def changing(self) -> np.ndarray:
        """Return the last of the features, which change with each choice: (sentences, features), float32."""
        words, pairs = self._left()
        rates, number = self._cover.rates(), len(self._sections)
        best = float(rates.max(initial=0))
        taken = np.zeros(number)
        taken[self._cover.chosen] = 1
        beside = np.pad(taken, 1)
        now = {
            "left_words": words,
            "left_pairs": pairs,
            "share_of_words": words / np.maximum(self._whole[0], 1e-9),
            "share_of_pairs": pairs / np.maximum(self._whole[1], 1e-9),
            "left_coverage": rates,
            "best_coverage": np.full(number, best),
            "share_of_best": rates / max(best, 1e-9),
            "chosen": np.full(number, taken.sum()),
            "chosen_before": beside[:-2],
            "chosen_behind": beside[2:],
            "chosen_in_section": np.bincount(self._sections, taken)[self._sections],
        }
        return _columns(now, _CHANGING)

    def _left(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of words and of pairs that each sentence would cover."""
        words, pairs = (
            np.bincount(sentence, self._cover.left[concept], minlength=len(self._sections))
            for concept, sentence in (self._words, self._pairs)
        )
        return words, pairs

    def _of_document(self, paper: Paper) -> dict[str, np.ndarray]:
        """Return what does not change."""
        lengths, sections, rates = self._cover.lengths, paper.sections, self._cover.first_rates
        number = len(lengths)
        place = np.arange(number)
        words, pairs = self._whole
        best_pair = np.zeros(number)
        np.maximum.at(best_pair, self._pairs[1], self._cover.left[self._pairs[0]])
        in_section = place - np.searchsorted(sections, sections)
        in_headings = np.bincount(paper.sentence, np.isin(paper.words.hashes, paper.headings), minlength=number)
        beside = np.pad(rates, 2)
        of_document = {
            "sentences": number,
            "words": lengths.sum(),
            "sections": sections[-1] + 1,
            "expected_words": words.sum(),
            "expected_pairs": pairs.sum(),
        }
        return {
            "all_words": words,
            "all_pairs": pairs,
            "mean_word": words / np.bincount(self._words[1], minlength=number).clip(1),
            "mean_pair": pairs / np.bincount(self._pairs[1], minlength=number).clip(1),
            "best_pair": best_pair,
            "length": lengths,
            "in_headings": in_headings / lengths,
            "centrality": paper.centrality,
            "coverage": rates,
            "coverage_place": np.argsort(np.argsort(-rates, kind="stable"), kind="stable"),
            "beside": beside[1:-3] + beside[3:-1],
            "further": beside[:-4] + beside[4:],
            "place": place,
            "from_end": number - place,
            "share_before": place / number,
            "place_in_section": in_section,
            "share_of_section": in_section / np.bincount(sections)[sections],
            "section": sections,
            "share_of_sections": sections / (sections[-1] + 1),
            "kind": paper.kinds[sections],
            **{name: np.full(number, value) for name, value in of_document.items()},
        }


def _columns(named: dict[str, np.ndarray], names: list[str]) -> np.ndarray:
    return np.column_stack([named[name] for name in names]).astype(np.float32)


class PolicyChoice(Choice):
    """Chooses the sentence that trees rate highest, given those that were chosen."""

    def __init__(self, history: History, cover: Cover, trees: Trees) -> None:
        super().__init__(cover.lengths)
        self.chosen = cover.chosen
        self._history, self._cover, self._trees = history, cover, trees
        self._fit = cover.first_rates > 0
        self._left = trees.left(history.fixed)

    def rates(self) -> np.ndarray:
        """Return what the trees expect of each sentence; of one that is chosen, unfit, or covers nothing, 0."""
        rated = self._fit.copy()
        rated[self.chosen] = False
        rates = np.zeros(len(rated))
        # A sentence may add next to nothing, but as long as it fits it does not harm.
        rates[rated] = np.maximum(self._trees.numbers(self._history.changing()[rated], self._left[rated]), 1e-9)
        return rates

    def take(self, sentence: int) -> None:
        self._cover.take(sentence)

"""Selects sentences by their scores, within a budget and without repetitions."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from pyramidions.base.arguments import Count, OneOf, Share, check_fields, checked
from pyramidions.extract.vectors import TfIdf, dense
from pyramidions.text.language import ENGLISH, Language
from pyramidions.text.words import count_words, ngrams

REDUNDANCY = ("none", "trigrams", "mmr")
#: The name of one.
Redundancy = Annotated[str, OneOf(REDUNDANCY)]
WORDS = 220  #: of a summary, unless a budget is given or a trained extractor has its own
MMR_WEIGHT = 0.7  #: of the score in maximal marginal relevance, unless another is given


class Budget(NamedTuple):
    """How much may be selected: most words of all sentences, and most sentences; None for any number."""

    words: Count | None = None
    sentences: Count | None = None


class SelectionRules(NamedTuple):
    """How sentences are selected by their scores.

    Attributes:
        budget: of the selection. If not even one sentence fits, the best is selected alone.
        redundancy: "none"; "trigrams" passes over a sentence that shares a trigram of words with a selected one (Paulus
            et al. 2018, section 2.5); "mmr" selects by maximal marginal relevance (Carbonell and Goldstein 1998), with
            scores scaled to [0, 1] and the cosine similarity of tf-idf vectors, fitted to the document.
        mmr_weight: of the score in "mmr", from 0 to 1; the similarity weighs the rest.
        stops: behind a selected sentence, one that does not fit into what is left of the budget ends the selection;
            otherwise it is passed over.
    """

    budget: Budget
    redundancy: Redundancy = "none"
    mmr_weight: Share = MMR_WEIGHT
    stops: bool = False


@checked
def select(
    sentences: Sequence[str],
    scores: np.ndarray,
    rules: SelectionRules,
    lengths: Sequence[int] | None = None,
    language: str = ENGLISH,
) -> list[int]:
    """Select sentences, the best first.

    Args:
        sentences: of the document.
        scores: (sentences,), more is better; a sentence of -inf is never selected.
        rules: of the selection.
        lengths: of the sentences, in tokens for example; ``budget.words`` then limits their sum. None to count words.
        language: of the document; decides what a word of a trigram is.

    Returns:
        Indices in reading order.

    Raises:
        UserError: a rule is invalid.
        ValueError: a score is NaN.
    """
    check_fields(rules)
    check_fields(rules.budget)
    scores = np.asarray(scores, dtype=np.float64)
    if np.isnan(scores).any():
        raise ValueError("Scores of sentences must be numbers, but one is NaN.")
    best_first = np.argsort(-scores, kind="stable")
    best_first = best_first[scores[best_first] > -np.inf]
    selection = _Selection(sentences, rules.budget, lengths)
    if rules.redundancy == "mmr":
        return _fill_by_relevance(sentences, scores, best_first, selection, rules.mmr_weight)
    words = Language(language).words if rules.redundancy == "trigrams" else None
    return _fill(sentences, best_first, selection, words, rules.stops)


class _Selection:
    """Sentences that were selected, and what is left of the budget."""

    def __init__(self, sentences: Sequence[str], budget: Budget, lengths: Sequence[int] | None) -> None:
        self._lengths = array("q", (count_words(sentence) for sentence in sentences)) if lengths is None else lengths
        self._words = np.inf if budget.words is None else budget.words
        self._sentences = np.inf if budget.sentences is None else budget.sentences
        self.indices: list[int] = []

    def fits(self, index: int) -> bool:
        return self._sentences >= 1 and self._lengths[index] <= self._words

    def add(self, index: int) -> None:
        self.indices.append(index)
        self._sentences -= 1
        self._words -= self._lengths[index]

    @property
    def is_full(self) -> bool:
        return self._sentences < 1 or self._words < 1

    def in_order(self, best_first: Iterable[int]) -> list[int]:
        """Return the selection in reading order; the best sentence alone if none fits."""
        return sorted(self.indices) or [int(index) for index in list(best_first)[:1]]


def _fill(
    sentences: Sequence[str],
    best_first: np.ndarray,
    selection: _Selection,
    words: Callable[[str], list[str]] | None,
    stops: bool,
) -> list[int]:
    seen: set[tuple[str, ...]] = set()
    for index in map(int, best_first):
        if selection.is_full:
            break
        if not selection.fits(index):
            if stops and selection.indices:
                break
            continue
        if words is not None:
            trigrams = set(ngrams(words(sentences[index]), 3))
            if trigrams & seen:
                continue
            seen |= trigrams
        selection.add(index)
    return selection.in_order(best_first)


def _fill_by_relevance(
    sentences: Sequence[str], scores: np.ndarray, best_first: np.ndarray, selection: _Selection, weight: float
) -> list[int]:
    if not best_first.size:
        return []
    vectors = TfIdf()(sentences)
    finite = scores[best_first]
    relevance = (finite - finite.min()) / max(float(np.ptp(finite)), 1e-12)
    similarity = np.zeros(len(sentences))  # to the most similar selected sentence
    open_ = np.ones(len(best_first), dtype=bool)
    while not selection.is_full:
        open_ &= np.array([selection.fits(int(index)) for index in best_first])
        if not open_.any():
            break
        marginal = np.where(open_, weight * relevance - (1 - weight) * similarity[best_first], -np.inf)
        place = int(np.argmax(marginal))
        index = int(best_first[place])
        open_[place] = False
        selection.add(index)
        row = dense(vectors[[index]]).ravel()
        similarity = np.maximum(similarity, dense(vectors @ row).ravel())
    return selection.in_order(best_first)

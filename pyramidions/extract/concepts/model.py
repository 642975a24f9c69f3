"""A model of which concepts of a document its summary holds."""

from typing import NamedTuple

import numpy as np

from pyramidions.extract.concepts.context import Context, measure_around
from pyramidions.extract.concepts.coverage import Cover, Wanted
from pyramidions.extract.concepts.features import Concepts, Frequencies, with_chances
from pyramidions.extract.concepts.paper import Paper
from pyramidions.extract.concepts.trees import Trees
from pyramidions.text.language import ENGLISH

#: Weight of each order in a gain: words, and pairs.
WEIGHTS = (0.1, 0.9)
#: What is added to the probability of a word of a query that stands in one sentence alone; from validation meetings.
ASKED = 50.0
#: Power of a sentence's length that divides its gain, and what HipoRank adds to it.
POWER, CENTRALITY = 0.8, 0.5
#: A policy learns from extracts that are so many times as long as a summary.
LONGER = 1.5
#: Features of a concept of each order, without those of what stands around it.
FEATURES = (23, 32)


class ConceptModel(NamedTuple):
    """What a training learns; the first two have an entry for words and one for pairs."""

    known: tuple[Frequencies, Frequencies]  # how often concepts stood in summaries
    trees: tuple[Trees, Trees]  # how likely a concept is to stand in the summary, by its features
    words: int | None = None  # of the training summaries on average; None if it is not known
    policy: Trees | None = None  # what a sentence adds to an extract, by its `History`; None to choose by coverage
    language: str = ENGLISH  # whose words it knows, an ISO 639-1 code
    contexts: tuple[Context, Context] | None = None  # what stands around concepts; None with too few documents to learn

    @property
    def longest(self) -> int:
        """Words of the longest extracts that a policy learns from."""
        return max(1, round((self.words or 1) * LONGER))

    def wanted(self, paper: Paper) -> "WantedConcepts":
        """Return the concepts of a document with their probabilities."""
        measured = measure_around(paper, self.known, self.contexts)
        words, pairs = self.trees
        chances = words.chances(measured.features[0])
        return WantedConcepts(measured.concepts, (chances, pairs.chances(with_chances(paper, measured, chances))))


class WantedConcepts(NamedTuple):
    """The concepts of a document."""

    concepts: tuple[Concepts, Concepts]  # of each order
    chances: tuple[np.ndarray, ...]  # of each order, (concepts,): the probability that the summary holds each

    def weighed(self, query: np.ndarray | None = None) -> Wanted:
        """Return all of them, words before pairs, with their weights in a gain.

        Hashes in ``query`` are of words that are wanted more, the rarer they are.
        """
        (words, pairs), number = self.concepts, len(self.chances[0])
        chances = self.chances
        if query is not None:
            more = ASKED * np.isin(words.keys, query) * _rarity(words)
            chances = (chances[0] + more, chances[1])
        concept = np.concatenate([words.concept, pairs.concept + number])
        sentence = np.concatenate([words.sentence, pairs.sentence])
        order = np.argsort(sentence, kind="stable")
        weights = np.concatenate([weight * each for weight, each in zip(WEIGHTS, chances, strict=True)])
        return Wanted(weights, concept[order], sentence[order])

    def cover(self, paper: Paper, query: np.ndarray | None = None) -> Cover:
        """Return the choice among the sentences of the document by coverage, before any is chosen."""
        # No summary should hold a sentence that is unfit.
        bonus = np.where(paper.fit, 1 + CENTRALITY * paper.centrality, 0.0)
        return Cover(self.weighed(query), paper.lengths, bonus, POWER)


def _rarity(words: Concepts) -> np.ndarray:
    """Return how rare each word is among the sentences, from 0 in all of them to 1 in one: (concepts,)."""
    sentences = max(1 + words.sentence.max(initial=0), 2)
    return 1 - np.log(np.bincount(words.concept, minlength=len(words.keys))) / np.log(sentences)

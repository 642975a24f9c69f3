"""Ranks sentences by the wanted concepts that they cover."""

from pathlib import Path

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.extract.concepts.coverage import Cover
from pyramidions.extract.concepts.files import load_concepts
from pyramidions.extract.concepts.model import ConceptModel, WantedConcepts
from pyramidions.extract.concepts.paper import Paper, paper_of
from pyramidions.extract.concepts.policy import History, PolicyChoice
from pyramidions.extract.concepts.words import hashes_of
from pyramidions.extract.core import Ranker
from pyramidions.extract.hiporank import HipoRank
from pyramidions.extract.selection import WORDS, Budget, SelectionRules
from pyramidions.text.language import Language
from pyramidions.text.outline import Outline


class ConceptRanker(Ranker):
    """Ranks the sentences that cover the wanted concepts of a document in the order of their choice.

    The other sentences follow by what they are worth by themselves. One that covers nothing has -inf. Where none covers
    anything, as in another language, HipoRank ranks them, and all scores are below 0.

    The choice keeps to the budget. Without limits, sentences are chosen while they cover more. Beyond the longest
    extracts that a policy learned from, coverage goes on. Words of a query are wanted more, the rarer they are;
    coverage alone chooses then.
    """

    @checked
    def __init__(
        self,
        model: ConceptModel,
        budget: Budget = Budget(),  # noqa: B008, cannot change
        query: str | None = None,
    ) -> None:
        self.model = model
        self.budget = budget
        self.query = query

    @property
    def rules(self) -> SelectionRules:
        """As many words as the summaries of training had."""
        return SelectionRules(Budget(self.model.words or WORDS))

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        if not outline.sentences:
            return np.zeros(0)
        language = self.model.language
        paper = paper_of(outline, language)
        query = None if self.query is None else hashes_of(self.query, language)
        cover = choose(self.model, paper, self.model.wanted(paper), self.budget, query)
        alone = cover.first_rates
        if not alone.any():
            central = HipoRank().rank(outline)
            return central - central.max() - 1
        scores = np.where(alone > 0, alone / max(float(alone.max()), 1e-12), -np.inf)
        scores[cover.chosen] = np.arange(len(cover.chosen), 0, -1) + 1.0
        return scores


def choose(
    model: ConceptModel, paper: Paper, wanted: WantedConcepts, budget: Budget, query: np.ndarray | None = None
) -> Cover:
    """Choose sentences: by the policy of a model, as far as it has learned, then by coverage; with a query by that
    alone.
    """
    cover = wanted.cover(paper, query)
    if query is None and model.policy is not None:
        learned = Budget(min(model.longest, budget.words or model.longest), budget.sentences)
        PolicyChoice(History(paper, wanted, cover), cover, model.policy).fill(learned)
    cover.fill(budget)
    return cover


def read_ranker(folder: Path) -> ConceptRanker:
    """Return the ranker of a model on disk, for any budget; errors are those of `load_concepts`."""
    return ConceptRanker(load_concepts(folder))


def covered(
    model: ConceptModel, outline: Outline, chosen: list[int], query: str | None = None, most: int = 8
) -> list[list[tuple[str, float]]]:
    """Return the concepts that each of some sentences covers and none before it does, the most wanted first.

    Concepts are in the document's words, ``most`` of a sentence, each with the probability that a summary holds it.
    Words of a query are wanted for certain.
    """
    wanted = model.wanted(paper_of(outline, model.language))
    if query is not None:
        asked = np.isin(wanted.concepts[0].keys, hashes_of(query, model.language))
        wanted = wanted._replace(chances=(np.where(asked, 1.0, wanted.chances[0]), wanted.chances[1]))
    words = [word for text in outline.texts for word in Language(model.language).words(text)]
    taken = [np.zeros(len(chances), dtype=bool) for chances in wanted.chances]
    by_sentence = []
    for sentence in chosen:
        here: list[tuple[str, float]] = []
        for order, (concepts, chances, seen) in enumerate(zip(wanted.concepts, wanted.chances, taken, strict=True), 1):
            held = concepts.concept[concepts.sentence == sentence]
            held = held[~seen[held]]
            seen[held] = True
            here += [
                (" ".join(words[place : place + order]), float(chances[concept]))
                for concept, place in zip(held.tolist(), concepts.places[held].tolist(), strict=True)
            ]
        by_sentence.append(sorted(here, key=lambda each: -each[1])[:most])
    return by_sentence

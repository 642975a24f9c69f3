"""Ranks sentences by the wanted concepts that they cover."""

from pathlib import Path

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.extract.concepts.coverage import Choice, Cover
from pyramidions.extract.concepts.files import load_concepts
from pyramidions.extract.concepts.model import POWER, ConceptModel, bonus_of
from pyramidions.extract.concepts.paper import Paper, paper_of
from pyramidions.extract.concepts.policy import Policed
from pyramidions.extract.concepts.words import hashes_of
from pyramidions.extract.core import Ranker
from pyramidions.extract.hiporank import HipoRank
from pyramidions.extract.selection import Budget
from pyramidions.text.outline import Outline
from pyramidions.text.overlap import words_of

#: Sentences that a policy chooses where the budget has no limit.
_MOST = 100


class ConceptRanker(Ranker):
    """Ranks the sentences that cover the wanted concepts of a document in the order of their choice.

    The other sentences follow by what they are worth by themselves. One that covers nothing has -inf. Where none
    covers anything, as in another language, HipoRank ranks them, and all scores are below 0.

    Args:
        model: knows which concepts are wanted.
        budget: of the selection, which the choice keeps to; without limits, sentences are chosen while they cover more,
            or, by a policy, the first 100.
        query: what the summary answers: its words are wanted more, the rarer they are among the sentences, which are
            chosen by coverage.
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

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        if not outline.sentences:
            return np.zeros(0)
        paper = paper_of(outline)
        choice, most = self._choice(paper)
        alone = choice.rates()
        if not alone.any():
            central = HipoRank().rank(outline)
            return central - central.max() - 1
        choice.fill(Budget(sentences=most) if self.budget == Budget() else self.budget)
        scores = np.where(alone > 0, alone / max(float(alone.max()), 1e-12), -np.inf)
        scores[choice.chosen] = np.arange(len(choice.chosen), 0, -1) + 1.0
        return scores

    def _choice(self, paper: Paper) -> tuple[Choice, int | None]:
        """Return how sentences are chosen, and how many without a limit."""
        wanted = self.model.wanted(paper)
        if self.query is None and self.model.policy is not None:
            return Policed(paper, wanted, self.model.policy), _MOST
        weighed = wanted.weighed(None if self.query is None else hashes_of(self.query))
        return Cover(weighed, paper.lengths, bonus_of(paper), POWER), None


def read_ranker(folder: Path) -> ConceptRanker:
    """Return the ranker of a model on disk, for any budget; errors are those of `load_concepts`."""
    return ConceptRanker(load_concepts(folder))


def covered(
    model: ConceptModel, outline: Outline, chosen: list[int], query: str | None = None, most: int = 8
) -> list[list[tuple[str, float]]]:
    """Return the concepts that each of some sentences covers and none before it does, the most wanted first.

    Args:
        model: knows which concepts are wanted.
        outline: of the document.
        chosen: the sentences, in the order in which they are read.
        query: its words are wanted for certain.
        most: concepts of a sentence.

    Returns:
        For each sentence its concepts in the document's words, each with the probability that a summary holds it.
    """
    wanted = model.wanted(paper_of(outline))
    if query is not None:
        asked = np.isin(wanted.concepts[0].keys, hashes_of(query))
        wanted = wanted._replace(chances=(np.where(asked, 1.0, wanted.chances[0]), wanted.chances[1]))
    words = [word for text in outline.texts for word in words_of(text)]
    taken = [np.zeros(len(chances), dtype=bool) for chances in wanted.chances]
    found = []
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
        found.append(sorted(here, key=lambda each: -each[1])[:most])
    return found

"""TextRank: the PageRank of sentences."""

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.extract.core import RANKERS, Ranker
from pyramidions.extract.vectors import SentenceVectors, TfIdf, dense, squares
from pyramidions.text.outline import Outline

_TOLERANCE, _MOST_STEPS = 1e-9, 200


@RANKERS.register("textrank")
class TextRank(Ranker):
    """PageRank of the sentences of a document (Mihalcea and Tarau 2004).

    The weights of the graph are cosine similarities of tf-idf vectors, as in continuous LexRank (Erkan and Radev 2004,
    section 3.3). The graph is never written down: a step multiplies by the vectors twice, so that time and memory are
    linear in the length of the document.

    Args:
        damping: the chance to follow an edge instead of starting anywhere.
        vectors: of the sentences; tf-idf fitted to the document by default. Vectors of an encoder may be opposed: their
            similarity is shifted to [0, 1], since no weight of the graph may be negative.

    Raises:
        UserError: ``damping`` is not in [0, 1).
    """

    @checked
    def __init__(self, damping: float = 0.85, vectors: SentenceVectors | None = None) -> None:
        if not 0 <= damping < 1:
            raise UserError(f"`damping` must be at least 0 and below 1, but is {damping}.")
        self.damping = damping
        self.vectors = vectors or TfIdf()

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        number = len(outline.sentences)
        if not number:
            return np.zeros(0)
        x = self.vectors(outline.texts)
        own = squares(x)
        shifted = isinstance(x, np.ndarray)

        def spread(weights: np.ndarray) -> np.ndarray:
            """Multiply by the matrix of similarities, whose diagonal is zero."""
            found = dense(x @ dense(x.T @ weights).ravel()).ravel() - own * weights
            return (found + weights.sum() - weights) / 2 if shifted else found

        degree = spread(np.ones(number))
        linked = degree > 1e-9
        rank = np.full(number, 1 / number)
        for _ in range(_MOST_STEPS):
            before = rank
            # A sentence without neighbours hands its rank to all.
            shared = rank[~linked].sum() / number
            share = np.divide(rank, degree, out=np.zeros(number), where=linked)
            rank = (1 - self.damping) / number + self.damping * (spread(share) + shared)
            if np.abs(rank - before).sum() < _TOLERANCE:
                break
        return rank

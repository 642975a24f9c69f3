"""TextRank: the PageRank of sentences."""

from array import array
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.extract.core import RANKERS, Ranker
from pyramidions.extract.vectors import Matrix, SentenceVectors, dense, squares, words_of_vectors
from pyramidions.text.language import Language
from pyramidions.text.outline import Outline

_TOLERANCE, _MOST_STEPS = 1e-9, 200


@RANKERS.register("textrank")
class TextRank(Ranker):
    """PageRank of the sentences of a document (Mihalcea and Tarau 2004).

    Two sentences are as similar as the paper says: the number of different words that they share, over the sum of the
    logarithms of their lengths. Words are stems in the document's language (`Language`), of two letters at least,
    without stop words. With ``vectors``, cosines are the weights of the graph, as in continuous LexRank (Erkan and
    Radev 2004, section 3.3).

    The graph is never written down: a step multiplies by the words of the sentences twice. Time and memory are linear
    in the length of the document, times the number of different lengths of sentences.

    Args:
        damping: the chance to follow an edge instead of starting anywhere.
        vectors: of the sentences; None for the similarity of the paper. Vectors of an encoder may be opposed: their
            similarity is shifted to [0, 1], since no weight of the graph may be negative.

    Raises:
        UserError: ``damping`` is not in [0, 1).
    """

    def __init__(self, damping: float = 0.85, vectors: SentenceVectors | None = None) -> None:
        if not 0 <= damping < 1:
            raise UserError(f"`damping` must be at least 0 and below 1, but is {damping}.")
        self.damping = damping
        self.vectors = vectors

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        number = len(outline.sentences)
        if not number:
            return np.zeros(0)
        spread = (
            _by_words(outline.texts, Language(outline.language))
            if self.vectors is None
            else _by_cosines(self.vectors(outline.texts))
        )
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


#: Multiplies (sentences,) by the matrix of similarities, whose diagonal is zero.
_Spread: TypeAlias = Callable[[np.ndarray], np.ndarray]


def _by_cosines(x: Matrix) -> _Spread:
    own = squares(x)
    shifted = isinstance(x, np.ndarray)

    def spread(weights: np.ndarray) -> np.ndarray:
        similarities = dense(x @ dense(x.T @ weights).ravel()).ravel() - own * weights
        return (similarities + weights.sum() - weights) / 2 if shifted else similarities

    return spread


def _by_words(sentences: Iterable[str], language: Language) -> _Spread:
    from scipy.sparse import csr_array

    stop_words = language.stop_words
    columns: dict[str, int] = {}
    indices, ends, lengths = array("i"), array("i", [0]), array("i")
    for sentence in sentences:
        words = [word for word in words_of_vectors(sentence) if not word.isdigit() and word not in stop_words]
        indices.extend({columns.setdefault(language.stem(word), len(columns)) for word in words})
        ends.append(len(indices))
        lengths.append(max(len(words), 1))
    number = len(lengths)
    x = csr_array((np.ones(len(indices)), np.asarray(indices), ends), shape=(number, max(len(columns), 1)))
    different, group = np.unique(lengths, return_inverse=True)
    logs = np.log(different)
    # (sentences, lengths): a pair of single words has no similarity.
    sums = logs[group][:, None] + logs
    inverse = np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)
    places = np.arange(number)
    own = np.diff(ends) * inverse[places, group]

    def spread(weights: np.ndarray) -> np.ndarray:
        by_length = csr_array((weights, (places, group)), shape=(number, len(different)))
        shared = x @ dense(x.T @ by_length)  # (sentences, lengths)
        return (shared * inverse).sum(axis=1) - own * weights

    return spread

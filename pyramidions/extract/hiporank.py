"""HipoRank: how central a sentence is to its section, and to all sections."""

from typing import Annotated

import numpy as np

from pyramidions.base.arguments import Range, checked
from pyramidions.extract.core import RANKERS, Ranker
from pyramidions.extract.vectors import Matrix, SentenceVectors, TfIdf, dense, rows, squares
from pyramidions.text.outline import Outline

_BLOCK = 512  # sentences whose similarities are held at a time


@RANKERS.register("hiporank")
class HipoRank(Ranker):
    """Directed centrality in a graph of sentences and sections (Dong, Mircea and Cheung, EACL 2021, section 3).

    A sentence is similar to the others of its section, and to each section as a whole. A similarity counts
    ``lambda_2`` if the sentence is at least as close to a boundary of the section as the other one (the section at
    least as close to a boundary of the document), and ``lambda_1`` otherwise. Similarities are cosines; the authors'
    code maps them to [0, 1], which the paper does not say.

    The score is the mean over the section plus ``mu`` times the mean over sections. Time and memory are linear in the
    number of sentences, since a sum of similarities is the similarity to a sum.

    Args:
        mu: weight of the sections; 0.5 in the paper.
        lambda_1: weight of an edge from what is closer to a boundary.
        lambda_2: weight of an edge from what is not closer.
        alpha: above 1, the beginning is closer than an end at the same distance; below 1, farther.
        vectors: of the sentences; tf-idf fitted to the document by default.

    Raises:
        UserError: ``alpha`` is not positive, or an argument is of another type.
    """

    def __init__(
        self,
        mu: float = 1.0,
        lambda_1: float = 0.0,
        lambda_2: float = 1.0,
        alpha: Annotated[float, Range(0, open=True)] = 1.0,
        vectors: SentenceVectors | None = None,
    ) -> None:
        self.mu = mu
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.alpha = alpha
        self.vectors = vectors or TfIdf()

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        sentences = outline.sentences
        if not sentences:
            return np.zeros(0)
        x = self.vectors(outline.texts)
        # Headings without text are no sections.
        _, sizes = np.unique(sentences.sections, return_counts=True)
        ends = np.cumsum(sizes)
        parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        within = [self._within(rows(x, part)) for part in parts]
        scores = self._among(x, parts)
        scores *= self.mu
        for part, each in zip(parts, within, strict=True):
            scores[part] += each
        return scores

    def _within(self, x: Matrix) -> np.ndarray:
        """Return the mean weighted similarity of each sentence of a section to the others."""
        scores, others = self._not_closer(x)
        others -= squares(x)
        scores = self._weighted(scores, others)
        scores /= max(x.shape[0] - 1, 1)
        return scores

    def _not_closer(self, x: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Return the summed similarity of each sentence to those that are not closer to a boundary, and to all."""
        distance = self._distance(x.shape[0])
        farthest_first = np.argsort(-distance, kind="stable")
        scores = np.zeros(x.shape[0])
        farther = np.zeros(x.shape[1])  # sum of the sentences that are farther than those of the block
        for places in _blocks(distance[farthest_first]):
            here = farthest_first[places]
            block = x[here]
            similarity = dense(block @ block.T)
            np.fill_diagonal(similarity, 0)
            not_closer = distance[here][None, :] >= distance[here][:, None]
            scores[here] = dense(block @ farther) + (similarity * not_closer).sum(axis=1)
            farther = farther + dense(block.sum(axis=0)).ravel()
        # By now that is the sum of all sentences.
        return scores, dense(x @ farther)

    def _among(self, x: Matrix, parts: list[slice]) -> np.ndarray:
        """Return the mean weighted similarity of each sentence to the sections, its own among them."""

        def direction(section: int) -> np.ndarray:
            total = dense(rows(x, parts[section]).sum(axis=0)).ravel()
            length = float(np.linalg.norm(total))
            return total / length if length else total

        distance = self._distance(len(parts))
        not_closer = np.zeros(x.shape[1])  # sum of the sections that are at least as far
        scores = np.zeros(x.shape[0])
        for level in np.unique(distance)[::-1]:
            alike = np.flatnonzero(distance == level).tolist()
            not_closer = sum((direction(section) for section in alike), start=not_closer)
            for section in alike:
                scores[parts[section]] = dense(rows(x, parts[section]) @ not_closer)
        # By now that is the sum of all sections.
        scores = self._weighted(scores, dense(x @ not_closer))
        scores /= len(parts)
        return scores

    def _weighted(self, not_closer: np.ndarray, every: np.ndarray) -> np.ndarray:
        """Return weighted sums of similarities to all others, and to those no closer to a boundary; overwrites both."""
        every -= not_closer
        every *= self.lambda_1
        not_closer *= self.lambda_2
        not_closer += every
        return not_closer

    def _distance(self, number: int) -> np.ndarray:
        """Return how far each of several places is from a boundary (equation 1)."""
        place = np.arange(number)
        return np.minimum(place, float(self.alpha) * (number - 1 - place))


def _blocks(distance: np.ndarray) -> list[slice]:
    """Cut places, sorted by distance, into blocks; those of one distance are in one block."""
    starts = np.flatnonzero(np.diff(distance, prepend=np.nan) != 0)
    cuts = [0]
    for start in starts:
        if start - cuts[-1] >= _BLOCK:
            cuts.append(int(start))
    return [slice(start, end) for start, end in zip(cuts, [*cuts[1:], len(distance)], strict=True)]

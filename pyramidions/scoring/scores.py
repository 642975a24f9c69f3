"""The figures of a system over documents, with intervals and comparisons by the bootstrap."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.scoring.metric import Figure

SAMPLES = 1000
SMALLEST_P = 2 / (SAMPLES + 1)  # that the bootstrap can give
SEED = 1


class Estimate(NamedTuple):
    """A mean over documents and its 95% interval."""

    mean: float
    low: float
    high: float


class Difference(NamedTuple):
    """How much one system is above another, its 95% interval, and the two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float


class Scores:
    """The scores of one system.

    Args:
        figures: what was measured, by name.
        scores: (documents, figures), in this order.
        signatures: of the metrics.
        remarks: what a reader of the figures must know, in sentences.
    """

    def __init__(
        self,
        figures: Mapping[str, Figure],
        scores: np.ndarray,
        signatures: Sequence[str] = (),
        remarks: Sequence[str] = (),
    ) -> None:
        self.figures = figures
        self.scores = scores
        self.signatures = tuple(signatures)
        self.remarks = tuple(remarks)
        self._compared: dict[Scores, dict[str, Difference]] = {}

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Mean and 95% percentile bootstrap interval (Efron, 1979) of every figure."""
        low, high = np.percentile(_resampled_means(self.scores), [2.5, 97.5], axis=0)
        columns = zip(self.figures, self.scores.mean(axis=0), low, high, strict=True)
        return {name: Estimate(float(m), float(lo), float(hi)) for name, m, lo, hi in columns}

    @property
    def signature(self) -> str:
        """One line with all that determines the figures, to be printed beside them."""
        bootstrap = f"bootstrap 95% {SAMPLES} seed {SEED} | n={len(self.scores)}"
        return " | ".join([*self.signatures, bootstrap])

    def compare(self, other: "Scores") -> dict[str, Difference]:
        """Paired bootstrap (Koehn, 2004) of this system against another on the same documents.

        The p-value is twice the share of samples, one more sample counted on either side, in which the difference has
        not the sign that it has overall; at most 1.

        Raises:
            UserError: the systems have unequal numbers of documents, or other figures.
        """
        if list(self.figures) != list(other.figures):
            raise UserError(
                f"Two systems must be compared by the same figures, but they have {', '.join(self.figures)} and "
                f"{', '.join(other.figures)}."
            )
        if len(self.scores) != len(other.scores):
            raise UserError(
                "Two systems must be compared on the same documents, "
                f"but they have {len(self.scores)} and {len(other.scores)}."
            )
        # The table, the file and the page ask for the same, which takes seconds where documents are many.
        if other not in self._compared:
            self._compared[other] = self._differences(other)
        return self._compared[other]

    def _differences(self, other: "Scores") -> dict[str, Difference]:
        differences = self.scores - other.scores
        samples = _resampled_means(differences)
        low, high = np.percentile(samples, [2.5, 97.5], axis=0)
        against = np.minimum((samples <= 0).sum(axis=0), (samples >= 0).sum(axis=0))
        p_values = np.minimum(1.0, 2 * (against + 1) / (SAMPLES + 1))
        columns = zip(self.figures, differences.mean(axis=0), low, high, p_values, strict=True)
        return {name: Difference(float(d), float(lo), float(hi), float(p)) for name, d, lo, hi, p in columns}


def _resampled_means(scores: np.ndarray) -> np.ndarray:
    """Means of `SAMPLES` draws of as many documents with replacement, (samples, figures)."""
    random = np.random.default_rng(SEED)
    return np.stack([scores[random.integers(0, len(scores), len(scores))].mean(axis=0) for _ in range(SAMPLES)])


def pooled(values: np.ndarray) -> Estimate:
    """Return the mean and its 95% percentile bootstrap interval over two levels.

    Each draw takes as many seeds, and as many documents, with replacement. Of one seed, only documents are drawn.

    Args:
        values: (seeds, documents).
    """
    return pooled_difference(values, np.zeros_like(values[:1]))


def pooled_difference(values: np.ndarray, others: np.ndarray) -> Estimate:
    """Return by how much the mean is above that of another system, as `pooled` does.

    Both systems get the same documents in each draw, so that they are paired by document; the seeds of each are drawn
    apart, for equal numbers do not make two systems alike.

    Args:
        values: (seeds, documents).
        others: (other seeds, documents), of the same documents.

    Raises:
        ValueError: the numbers of documents differ.
    """
    if values.shape[1] != others.shape[1]:
        raise ValueError(f"Both must have the same documents, but have {values.shape[1]} and {others.shape[1]}.")
    random = np.random.default_rng(SEED)
    means = []
    for _ in range(SAMPLES):
        documents = random.integers(values.shape[1], size=values.shape[1])
        # (seeds, documents) -> (drawn documents), the mean of the drawn seeds
        one, other = (of[random.integers(len(of), size=len(of))].mean(axis=0)[documents] for of in (values, others))
        means.append((one - other).mean())
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(float(values.mean() - others.mean()), float(low), float(high))

"""Means over documents and seeds, with intervals that draw both anew."""

import numpy as np

from pyramidions.scoring.scores import SAMPLES, SEED, Estimate


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

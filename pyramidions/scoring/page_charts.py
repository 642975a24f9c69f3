"""What the charts of a page of scores show, in sizes that do not grow with the number of documents."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyramidions.scoring.examples import Examples
from pyramidions.text.words import word_places

_BINS = 40
#: documents of the scatter plot, at most
MOST_POINTS = 1500
_SEED = 1


def number(value: float) -> float | None:
    """Round to what a page shows; None for what is no number."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


def distribution(scores: np.ndarray) -> dict[str, Any]:
    """Count the documents along a figure.

    Few outliers would press all others into one bar: where the lowest and the highest percent take more than half of
    the range, the outermost bars count them.

    Args:
        scores: (systems, documents) of one figure.

    Returns:
        The range, whether it leaves out outliers, and of each system the counts of equal bars and the quartiles.
    """
    finite = scores[np.isfinite(scores)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    inner_low, inner_high = map(float, np.percentile(finite, [1, 99])) if finite.size else (low, high)
    cut = inner_low < inner_high < inner_low + (high - low) / 2
    if cut:
        low, high = inner_low, inner_high
    if low == high:
        low, high = low - 0.5, high + 0.5
    of_systems = [row[np.isfinite(row)] for row in scores]
    return {
        "low": number(low),
        "high": number(high),
        "cut": cut,
        "counts": [np.histogram(row.clip(low, high), _BINS, (low, high))[0].tolist() for row in of_systems],
        "quartiles": [
            [number(value) for value in np.percentile(row, [0, 25, 50, 75, 100])] if row.size else [None] * 5
            for row in of_systems
        ],
    }


def length_points(examples: Sequence[Examples], ids: Sequence[str], values: np.ndarray) -> dict[str, Any]:
    """Return the lengths and scores of documents, drawn at random if there are more than `MOST_POINTS`.

    Args:
        examples: of each system.
        ids: of the documents.
        values: (systems, documents, figures).

    Returns:
        The ids; of each system the lengths in words, the scores of each figure, and their correlations (Pearson) with
        the lengths, None where one of both never changes.
    """
    places = list(range(len(ids)))
    if len(ids) > MOST_POINTS:
        places = sorted(np.random.default_rng(_SEED).choice(len(ids), MOST_POINTS, replace=False).tolist())
    words = [[sum(1 for _ in word_places(of_system[place].prediction)) for place in places] for of_system in examples]
    scores = values[:, places].transpose(0, 2, 1)
    return {
        "ids": [ids[place] for place in places],
        "words": words,
        "scores": [[list(map(number, of_figure)) for of_figure in of_system] for of_system in scores],
        "correlations": [
            [_correlation(np.array(lengths), of_figure) for of_figure in of_system]
            for lengths, of_system in zip(words, scores, strict=True)
        ],
    }


def _correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    if np.ptp(one) == 0 or not np.ptp(other) > 0:
        return None
    return number(float(np.corrcoef(one, other)[0, 1]))

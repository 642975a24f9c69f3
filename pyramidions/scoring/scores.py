"""Every metric of a system's summaries, with intervals and comparisons by the bootstrap."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pyramidions.errors import UserError
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.scoring import LABELS, METRICS

SAMPLES = 1000
SMALLEST_P = 2 / (SAMPLES + 1)  # that the bootstrap can give
SEED = 1
_CHUNK = 16  # documents that a worker gets at a time
_PARALLEL_FROM = 128  # below, starting processes takes longer than scoring


class Estimate(NamedTuple):
    """A mean over documents, 0 to 100, and its 95% interval."""

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
        scores: (documents, figures), in the order of `LABELS`, 0 to 100.
    """

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Mean and 95% percentile bootstrap interval (Efron, 1979) of every figure."""
        low, high = np.percentile(_resampled_means(self.scores), [2.5, 97.5], axis=0)
        columns = zip(LABELS, self.scores.mean(axis=0), low, high, strict=True)
        return {name: Estimate(float(m), float(lo), float(hi)) for name, m, lo, hi in columns}

    @property
    def signature(self) -> str:
        """One line that says all that decides over the figures, to be printed beside them."""
        metrics = " | ".join(metric.signature() for metric in METRICS)
        return f"{metrics} | bootstrap 95% {SAMPLES} seed {SEED} | n={len(self.scores)}"

    def compare(self, other: "Scores") -> dict[str, Difference]:
        """Paired bootstrap (Koehn, 2004) of this system against another on the same documents.

        The p-value is twice the share of samples, one more sample counted on either side, in which the difference has
        not the sign that it has overall; at most 1.

        Raises:
            UserError: the systems have unequal numbers of documents.
        """
        if len(self.scores) != len(other.scores):
            raise UserError(
                "Two systems must be compared on the same documents, "
                f"but they have {len(self.scores)} and {len(other.scores)}."
            )
        differences = self.scores - other.scores
        samples = _resampled_means(differences)
        low, high = np.percentile(samples, [2.5, 97.5], axis=0)
        against = np.minimum((samples <= 0).sum(axis=0), (samples >= 0).sum(axis=0))
        p_values = np.minimum(1.0, 2 * (against + 1) / (SAMPLES + 1))
        columns = zip(LABELS, differences.mean(axis=0), low, high, p_values, strict=True)
        return {name: Difference(float(d), float(lo), float(hi), float(p)) for name, d, lo, hi, p in columns}


def score_documents(predictions: Sequence[str], references: Sequence[str], *, workers: int = 1) -> Scores:
    """Score one system, with a progress bar.

    Args:
        predictions: one text a document.
        references: one text a document, in the same order.
        workers: number of processes; few documents are scored in this one.

    Raises:
        UserError: unequal counts, or no document.
    """
    if len(predictions) != len(references):
        raise UserError(
            f"There must be as many summaries as references, but there are {len(predictions)} and {len(references)}."
        )
    if not references:
        raise UserError("There must be at least one document to score.")
    if len(references) < _PARALLEL_FROM:
        workers = 1
    rows: list[tuple[float, ...]] = []
    pairs = zip(predictions, references, strict=True)
    with progress_bar("scoring", len(references), "documents") as bar:
        for scored in ordered_map(_score_chunk, chunks(pairs, _CHUNK), workers):
            rows.extend(scored)
            bar.update(len(scored))
    return Scores(np.array(rows))


def document_scores(prediction: str, reference: str) -> dict[str, float]:
    """Score one summary; return its figures by their names in `LABELS`."""
    figures = [figure for metric in METRICS for figure in metric.score(prediction, reference)]
    return dict(zip(LABELS, figures, strict=True))


def _score_chunk(pairs: list[tuple[str, str]]) -> list[tuple[float, ...]]:
    return [tuple(document_scores(prediction, reference).values()) for prediction, reference in pairs]


def _resampled_means(scores: np.ndarray) -> np.ndarray:
    """Means of `SAMPLES` draws of as many documents with replacement, (samples, figures)."""
    random = np.random.default_rng(SEED)
    return np.stack([scores[random.integers(0, len(scores), len(scores))].mean(axis=0) for _ in range(SAMPLES)])

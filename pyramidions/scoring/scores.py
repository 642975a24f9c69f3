"""Scores the summaries of a system by several metrics, with intervals and comparisons by the bootstrap."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metric import METRICS, Figure, Metric, MetricOptions
from pyramidions.text.normalization import normalize

_PARALLEL_FROM = 128  # documents; below, starting processes takes longer than scoring
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


@dataclass(eq=False)
class Scores:
    """The scores of one system."""

    figures: Mapping[str, Figure]  #: what was measured, by name
    scores: np.ndarray  #: (documents, figures), in this order
    signatures: Sequence[str] = ()  #: of the metrics
    remarks: Sequence[str] = ()  #: what a reader of the figures must know, in sentences
    _compared: "dict[Scores, dict[str, Difference]]" = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Mean and 95% percentile bootstrap interval (Efron, 1979) of every figure."""
        low, high = np.percentile(_resampled_means(self.scores), [2.5, 97.5], axis=0)
        columns = zip(self.figures, self.scores.mean(axis=0), low, high, strict=True)
        return {name: Estimate(*map(float, each)) for name, *each in columns}

    @property
    def signature(self) -> str:
        """One line with all that determines the figures, to be printed beside them."""
        bootstrap = f"bootstrap 95% {SAMPLES} seed {SEED} | n={len(self.scores)}"
        return " | ".join([*self.signatures, bootstrap])

    def compare(self, other: "Scores") -> dict[str, Difference]:
        """Paired bootstrap (Koehn, 2004) of this system against another by the same figures of the same documents.

        The p-value is twice the share of samples, one more sample counted on either side, in which the difference has
        not the sign that it has overall; at most 1.
        """
        if self.scores.shape != other.scores.shape:
            raise UserError("Two systems must be compared by the same figures of the same documents, but are not.")
        # The table and the file ask for the same, which takes seconds where documents are many.
        if other not in self._compared:
            differences = self.scores - other.scores
            samples = _resampled_means(differences)
            low, high = np.percentile(samples, [2.5, 97.5], axis=0)
            against = np.minimum((samples <= 0).sum(axis=0), (samples >= 0).sum(axis=0))
            p_values = np.minimum(1.0, 2 * (against + 1) / (SAMPLES + 1))
            columns = zip(self.figures, differences.mean(axis=0), low, high, p_values, strict=True)
            self._compared[other] = {name: Difference(*map(float, each)) for name, *each in columns}
        return self._compared[other]


def _resampled_means(scores: np.ndarray) -> np.ndarray:
    """Means of `SAMPLES` draws of as many documents with replacement, (samples, figures)."""
    random = np.random.default_rng(SEED)
    return np.stack([scores[random.integers(0, len(scores), len(scores))].mean(axis=0) for _ in range(SAMPLES)])


def check_names(names: Sequence[str]) -> None:
    """Refuse no name of a metric, an unknown one, and one that comes twice."""
    if not names:
        raise UserError("At least one metric must be given.")
    for position, name in enumerate(names):
        if name not in METRICS.names:
            meant = get_close_matches(name, METRICS.names, 1)
            hint = f" (did you mean {meant[0]}?)" if meant else ""
            raise UserError(f"A metric must be one of {', '.join(METRICS.names)}, but is {name!r}{hint}.")
        if name in names[:position]:
            raise UserError(f"Each metric must be given once, but {name} comes twice.")


def metrics_of(names: Sequence[str], options: MetricOptions | None = None) -> dict[str, Metric]:
    """Make metrics by names, in the order of their columns; each takes the options that it knows.

    Refuses an option that is given and that none of them takes.
    """
    check_names(names)
    given = asdict(options or MetricOptions())
    for option, usual in asdict(MetricOptions()).items():
        if given[option] != usual and not any(option in METRICS.arguments(name) for name in names):
            raise UserError(f"`{option}` has no effect: none of the metrics ({', '.join(names)}) takes it.")
    return {name: METRICS.build(name, {}, **given) for name in names}


def score_documents(examples: Examples, metrics: Mapping[str, Metric], *, workers: int = 1) -> Scores:
    """Score one system, with progress bars; metrics that may run in several processes run in as many as ``workers``.

    Texts are read as they are needed: memory grows by the figures of a document, not by its text.
    """
    for name, metric in metrics.items():
        if metric.reads_source and examples.sources is None:
            raise UserError(f"The metric {name} compares summaries with their documents, but there are none.")
    if len(examples) < _PARALLEL_FROM:
        workers = 1
    scored = [_score(name, metric, examples, workers if metric.in_workers else 1) for name, metric in metrics.items()]
    figures = {name: figure for metric in metrics.values() for name, figure in metric.figures.items()}
    signatures = [metric.signature() for metric in metrics.values()]
    remarks = [remark for metric in metrics.values() for remark in metric.remarks()]
    remarks = [*_about_empty(examples, figures), *remarks]
    return Scores(figures, np.concatenate(scored, axis=1), tuple(signatures), tuple(remarks))


def _score(name: str, metric: Metric, examples: Examples, workers: int) -> np.ndarray:
    """Return the figures of one metric: (documents, figures)."""
    if not metric.reads_source:
        # Whole documents would be decoded, and sent to workers, for nothing.
        examples = Examples(examples.predictions, examples.references)
    metric.fit(examples)
    scored = []
    with progress_bar(f"scoring {name}", len(examples), "documents") as bar:
        for of_batch in ordered_map(metric.score, chunks(examples, metric.batch_size), workers):
            scored.append(of_batch)
            bar.update(len(of_batch))
    return np.concatenate(scored)


def _about_empty(examples: Examples, figures: Mapping[str, Figure]) -> list[str]:
    empty = sum(not normalize(text) for text in map(examples.predictions.__getitem__, range(len(examples))))
    if not empty:
        return []
    verb = "is empty and gets" if empty == 1 else "are empty and get"
    told = f"{empty:,} of {len(examples):,} summaries {verb}"
    unbounded = ", ".join(figure.label for figure in figures.values() if not figure.bounded)
    if all(not figure.bounded for figure in figures.values()):
        return [f"{told} what the model gives an empty text: {unbounded} has no worst value."]
    told += " the worst of each figure: 0, or 100 if lower is better."
    if unbounded:
        told += f" Figures without a worst value ({unbounded}) count what the model gives an empty text."
    return [told]


def pooled(values: np.ndarray) -> Estimate:
    """Return the mean of values, (seeds, documents), and its 95% percentile bootstrap interval over both.

    Each draw takes as many seeds, and as many documents, with replacement. Of one seed, only documents are drawn.
    """
    return pooled_difference(values, np.zeros_like(values[:1]))


def pooled_difference(values: np.ndarray, others: np.ndarray) -> Estimate:
    """Return the difference of the mean to that of another system, as `pooled` does.

    Both systems get the same documents in each draw, so that they are paired by document; the seeds of each are drawn
    apart, for equal numbers do not make two systems alike. Values are (seeds, documents) and (other seeds, documents).
    """
    random = np.random.default_rng(SEED)
    means = []
    for _ in range(SAMPLES):
        documents = random.integers(values.shape[1], size=values.shape[1])
        # (seeds, documents) -> (drawn documents), the mean of the drawn seeds
        one, other = (of[random.integers(len(of), size=len(of))].mean(axis=0)[documents] for of in (values, others))
        means.append((one - other).mean())
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(float(values.mean() - others.mean()), float(low), float(high))

"""Scores the summaries of one system by several metrics, a few documents at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metric import METRICS, Metric, MetricOptions
from pyramidions.scoring.scores import Scores

_PARALLEL_FROM = 128  # documents; below, starting processes takes longer than scoring


def check_names(names: Sequence[str]) -> None:
    """Check names of metrics.

    Raises:
        UserError: no name, an unknown one, or one that comes twice.
    """
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
    """Make metrics; return them by their names.

    Args:
        names: registered ones, in the order of their columns.
        options: each metric takes what it knows.

    Raises:
        UserError: the names are not as in `check_names`; a metric lacks an option or a library; or no metric takes an
            option that is given.
    """
    check_names(names)
    given = asdict(options or MetricOptions())
    for option, usual in asdict(MetricOptions()).items():
        if given[option] != usual and not any(option in METRICS.arguments(name) for name in names):
            raise UserError(f"`{option}` has no effect: none of the metrics ({', '.join(names)}) takes it.")
    return {name: METRICS.build(name, {}, **given) for name in names}


def score_documents(examples: Examples, metrics: Mapping[str, Metric], *, workers: int = 1) -> Scores:
    """Score one system, with progress bars.

    Texts are read as they are needed: memory grows by the figures of a document, not by its text.

    Args:
        examples: of the system.
        metrics: as `metrics_of` makes them.
        workers: number of processes for the metrics that may run in several; few documents are scored in this one.

    Raises:
        UserError: a metric reads documents, but there are none.
    """
    for name, metric in metrics.items():
        if metric.reads_source and examples.sources is None:
            raise UserError(f"The metric {name} compares summaries with their documents, but there are none.")
    if len(examples) < _PARALLEL_FROM:
        workers = 1
    scored = [_score(name, metric, examples, workers if metric.in_workers else 1) for name, metric in metrics.items()]
    figures = {name: figure for metric in metrics.values() for name, figure in metric.figures.items()}
    signatures = [metric.signature() for metric in metrics.values()]
    remarks = [*_about_empty(examples), *(remark for metric in metrics.values() for remark in metric.remarks())]
    return Scores(figures, np.concatenate(scored, axis=1), signatures, remarks)


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


def _about_empty(examples: Examples) -> list[str]:
    empty = sum(not text.strip() for text in map(examples.predictions.__getitem__, range(len(examples))))
    if not empty:
        return []
    verb = "is empty and gets" if empty == 1 else "are empty and get"
    return [f"{empty:,} of {len(examples):,} summaries {verb} the worst of each figure: 0, or 100 if lower is better."]

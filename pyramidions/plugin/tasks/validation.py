"""Metrics of the summaries that validation writes, and the one that chooses the best checkpoint."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import asdict
from functools import partial
from typing import Any

from fairseq.data import BaseWrapperDataset
from fairseq.logging import metrics
from omegaconf import DictConfig

from pyramidions.base.errors import UserError
from pyramidions.base.notation import parse_list
from pyramidions.plugin.hooks import run_of
from pyramidions.plugin.tasks.config import ScoredTaskConfig
from pyramidions.scoring import FIGURES, METRICS, Example, Metric, MetricOptions, metric_of
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import check_names
from pyramidions.text.tokenizer import Tokenizer

_COUNT = "_scored_documents"
#: Figures of speed and size that fairseq logs; nobody chooses a checkpoint by them.
_COUNTED = {"wps", "wpb", "bsz", "num_updates"}


def asked_metrics(cfg: Any) -> dict[str, Mapping[str, Any]]:
    """Return the options of each metric that the user asked for, in the order of their columns; none of other tasks."""
    if not hasattr(cfg, "eval_metrics"):
        return {}
    parts = parse_list("eval_metrics", cfg.eval_metrics) if cfg.eval_metrics else []
    if parts:
        check_names([part.kind for part in parts])
    return ({"rouge": {}} if cfg.eval_rouge else {}) | {part.kind: part.options for part in parts}


def validation_metrics(cfg: ScoredTaskConfig) -> dict[str, Metric]:
    """Make these metrics."""
    usual = asdict(MetricOptions())
    return {
        name: METRICS.build(name, {key: usual[key] for key in usual.keys() & METRICS.arguments(name)} | dict(options))
        for name, options in asked_metrics(cfg).items()
    }


class WithExamples(BaseWrapperDataset):
    """A dataset whose batches hold what the summary of each document is scored against, as ``examples``."""

    def __init__(self, dataset: Any, examples: Examples, split: str) -> None:
        super().__init__(dataset)
        self.examples = examples
        self.split = split

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        batch: dict[str, Any] = self.dataset.collater(samples, **kwargs)
        if batch:
            batch["examples"] = [self.examples[index] for index in batch["id"].tolist()]
            batch["split"] = self.split
        return batch


class ValidationScores:
    """Decodes validation batches and scores them against the raw references."""

    def __init__(self, generator: Any, tokenizer: Tokenizer, scorers: Mapping[str, Metric]) -> None:
        self.generator = generator
        self.tokenizer = tokenizer
        self.scorers = scorers
        # What a metric learns of one split says nothing about another.
        self._of_splits: dict[str, dict[str, Metric]] = {}

    @property
    def reads_source(self) -> bool:
        """Whether any metric compares with the documents."""
        return any(metric.reads_source for metric in self.scorers.values())

    def fit(self, split: str, examples: Examples) -> None:
        """Let metrics learn from a split; there are no summaries yet, so references stand for them."""
        for metric in self._of(split).values():
            metric.fit(examples)

    def _of(self, split: str) -> dict[str, Metric]:
        """Return the metrics of a split; their models are those of all splits."""
        if split not in self._of_splits:
            self._of_splits[split] = {name: copy(metric) for name, metric in self.scorers.items()}
        return self._of_splits[split]

    def score(self, task: Any, sample: dict[str, Any], model: Any) -> dict[str, float]:
        """Return, of a batch of `WithExamples`, the sum of each figure and the number of documents."""
        hypotheses = task.inference_step(self.generator, [model], sample)
        texts = [self.tokenizer.decode(best[0]["tokens"].tolist()) for best in hypotheses]
        # fairseq makes plain tuples of named ones when it moves a batch to a GPU or to half precision.
        examples = [
            Example(text, references, source)
            for text, (_, references, source) in zip(texts, sample["examples"], strict=True)
        ]
        sums = {_COUNT: float(len(examples))}
        for metric in self._of(sample["split"]).values():
            of_batch = metric.score(examples).sum(axis=0)
            sums |= {_sum(name): float(total) for name, total in zip(metric.figures, of_batch, strict=True)}
        return sums

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the mean of each figure over all documents of all workers."""
        count = sum(float(log.get(_COUNT, 0)) for log in logging_outputs)
        if count == 0:
            return
        # Sums, which fairseq adds up over batches; what has a leading underscore is not displayed.
        metrics.log_scalar_sum(_COUNT, count)
        for name in FIGURES:
            if any(_sum(name) in log for log in logging_outputs):
                metrics.log_scalar_sum(_sum(name), sum(float(log.get(_sum(name), 0)) for log in logging_outputs))
                metrics.log_derived(name, partial(_mean, name=name))


def _sum(name: str) -> str:
    return f"_{name}_sum"


def _mean(meters: Any, name: str) -> float:
    return float(meters[_sum(name)].sum / meters[_COUNT].sum)


def check_best(cfg: Any) -> None:
    """Check the score that chooses the best checkpoint of the run that the task of ``cfg`` belongs to."""
    run = run_of(cfg)
    figure = None if run is None or run.dataset.disable_validation else run.checkpoint.best_checkpoint_metric
    if run is None or figure not in FIGURES:
        return
    metric, better = metric_of(figure), FIGURES[figure].better
    if metric not in asked_metrics(cfg):
        flags = "--eval-rouge" if metric == "rouge" else f"--eval-metrics {metric}"
        raise UserError(f"--best-checkpoint-metric {figure} needs {flags}, which is not given.")
    maximizes = run.checkpoint.maximize_best_checkpoint_metric
    if better is not None and maximizes != (better == "higher"):
        raise UserError(
            f"--best-checkpoint-metric {figure} {'excludes' if maximizes else 'needs'} "
            f"--maximize-best-checkpoint-metric: {better} is better."
        )


def check_best_of_update(run: DictConfig, logged: Iterable[str], criterion: Any) -> None:
    """Check, as far as an update can tell, that validation will log the metric that chooses the best checkpoint."""
    conditional = getattr(criterion, "conditional_metrics", None)
    if conditional is None or run.dataset.disable_validation:
        return
    if not run.checkpoint.best_checkpoint_metric.startswith(conditional):
        check_best_metric(run, set(logged) - set(criterion.training_metrics))


def check_best_metric(run: DictConfig, logged: Iterable[str]) -> None:
    """Check that a validation logged the metric that chooses the best checkpoint."""
    metric, names = run.checkpoint.best_checkpoint_metric, set(logged)
    if metric not in names:
        known = ", ".join(sorted(name for name in names - _COUNTED if not name.startswith("_")))
        raise UserError(f"--best-checkpoint-metric must be one of {known}, but is {metric!r}.")

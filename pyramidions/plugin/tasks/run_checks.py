"""Mistakes in a run's settings that fairseq reports late or never."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pyramidions.base.errors import UserError
from pyramidions.plugin.tasks.run_config import run_of
from pyramidions.plugin.tasks.validation_metrics import metric_names
from pyramidions.scoring import FIGURES, metric_of

logger = logging.getLogger(__name__)

#: What fairseq logs of speed and size, by which nobody chooses a checkpoint.
_COUNTED = {"wps", "wpb", "bsz", "num_updates"}


def check_best(cfg: Any) -> None:
    """Check the score that chooses the best checkpoint of the run of which ``cfg`` is the task's part.

    Raises:
        UserError: no validation computes it, or the worst checkpoint would be chosen.
    """
    run = run_of(cfg)
    if run is None or run.dataset.disable_validation:
        return
    metric = run.checkpoint.best_checkpoint_metric
    if metric in FIGURES:
        _check_best(metric, metric_names(cfg), run.checkpoint.maximize_best_checkpoint_metric)


def check_run(run: DictConfig, stopping_patience: int) -> None:
    """Check how a run is to end and to begin.

    Raises:
        UserError: validations are to be counted, but there are none.
    """
    checkpoint = run.checkpoint
    if stopping_patience and run.dataset.disable_validation:
        raise UserError("--stopping-patience counts validations, but --disable-validation is given.")
    if checkpoint.patience > 0:
        logger.warning(
            "--patience %d counts validations in mid-epoch, too, and from zero when a run restarts; "
            "--stopping-patience does neither.",
            checkpoint.patience,
        )
    if checkpoint.finetune_from_model and (Path(checkpoint.save_dir) / "checkpoint_last.pt").exists():
        logger.warning(
            "--finetune-from-model %s is ignored: %s holds checkpoint_last.pt, and the run goes on from there.",
            checkpoint.finetune_from_model,
            checkpoint.save_dir,
        )


def check_best_of_update(run: DictConfig, logged: Iterable[str], criterion: Any) -> None:
    """Check, as far as an update can tell, that validation will log the metric that chooses the best checkpoint.

    Args:
        run: the config of the whole run.
        logged: by the update, with what the task adds at validation.
        criterion: of the update. Of one that does not tell which of its metrics an update may lack, or has alone, the
            first validation is checked.

    Raises:
        UserError: it will not.
    """
    conditional = getattr(criterion, "conditional_metrics", None)
    if conditional is None or run.dataset.disable_validation:
        return
    if not run.checkpoint.best_checkpoint_metric.startswith(conditional):
        check_best_metric(run, set(logged) - set(criterion.training_metrics))


def check_best_metric(run: DictConfig, logged: Iterable[str]) -> None:
    """Check that a validation logged the metric that chooses the best checkpoint.

    Raises:
        UserError: it did not.
    """
    metric, names = run.checkpoint.best_checkpoint_metric, set(logged)
    if metric not in names:
        known = ", ".join(sorted(name for name in names - _COUNTED if not name.startswith("_")))
        raise UserError(f"--best-checkpoint-metric must be one of {known}, but is {metric!r}.")


def _check_best(figure: str, computed: list[str], maximizes: bool) -> None:
    metric = metric_of(figure)
    if metric not in computed:
        flags = "--eval-rouge" if metric == "rouge" else f"--eval-metrics {metric}"
        raise UserError(f"--best-checkpoint-metric {figure} needs {flags}, which is not given.")
    if maximizes != (FIGURES[figure].better == "higher") and FIGURES[figure].better is not None:
        needed = "excludes" if maximizes else "needs"
        better = FIGURES[figure].better
        raise UserError(
            f"--best-checkpoint-metric {figure} {needed} --maximize-best-checkpoint-metric: {better} is better."
        )

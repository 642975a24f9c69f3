"""Mistakes in a run's settings that fairseq reports late or never."""

import logging
from pathlib import Path
from typing import Any

from pyramidions.errors import UserError
from pyramidions.scoring import FIGURES, metric_of
from pyramidions.tasks.run_config import run_of
from pyramidions.tasks.validation_metrics import metric_names

logger = logging.getLogger(__name__)


def check_run(cfg: Any) -> None:
    """Check the settings of the run of which ``cfg`` is the task's part.

    Raises:
        UserError: no validation computes the score that chooses the best checkpoint, or the worst one would be chosen;
            or validations are to be counted, but there are none.
    """
    run = run_of(cfg)
    if run is None:
        return
    checkpoint = run.checkpoint
    metric = checkpoint.best_checkpoint_metric
    if metric in FIGURES and not run.dataset.disable_validation:
        _check_best(metric, metric_names(cfg), checkpoint.maximize_best_checkpoint_metric)
    if cfg.stopping_patience and run.dataset.disable_validation:
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

"""What fairseq would notice late or never about a run."""

import logging
from pathlib import Path
from typing import Any, Optional

from omegaconf import DictConfig

from pyramidions.errors import UserError
from pyramidions.scoring.rouge import METRICS

logger = logging.getLogger(__name__)


def run_of(cfg: Any) -> Optional[DictConfig]:
    """Return the config of the whole run, of which ``cfg`` is the task's part; None where there is no run."""
    run = cfg._get_parent() if isinstance(cfg, DictConfig) else None
    return run if isinstance(run, DictConfig) and "checkpoint" in run else None


def check_run(cfg: Any) -> None:
    """Look at the whole run, of which ``cfg`` is the task's part, for what fairseq would notice late or never.

    Raises:
        UserError: the best checkpoint is to be chosen by a score that no validation computes, or validations are to
            be counted where there are none.
    """
    run = run_of(cfg)
    if run is None:
        return
    checkpoint = run.checkpoint
    metric = checkpoint.best_checkpoint_metric
    if metric in METRICS and not cfg.eval_rouge and not run.dataset.disable_validation:
        raise UserError(f"--best-checkpoint-metric {metric} needs --eval-rouge, which is not given.")
    if cfg.stopping_patience < 0:
        raise UserError(f"--stopping-patience must be at least 0, but is {cfg.stopping_patience}.")
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

"""What fairseq would notice late or never about a run."""

import logging
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pyramidions.errors import UserError
from pyramidions.scoring.rouge import METRICS

logger = logging.getLogger(__name__)


def check_run(cfg: Any) -> None:
    """Look at the whole run, of which ``cfg`` is the task's part, for what fairseq would notice late or never.

    Raises:
        UserError: the best checkpoint is to be chosen by a score that no validation computes.
    """
    run = cfg._get_parent() if isinstance(cfg, DictConfig) else None
    checkpoint = None if run is None else run.get("checkpoint")
    if run is None or checkpoint is None:
        return
    metric = checkpoint.best_checkpoint_metric
    if metric in METRICS and not cfg.eval_rouge and not run.dataset.disable_validation:
        raise UserError(f"--best-checkpoint-metric {metric} needs --eval-rouge, which is not given.")
    if checkpoint.finetune_from_model and (Path(checkpoint.save_dir) / "checkpoint_last.pt").exists():
        logger.warning(
            "--finetune-from-model %s is ignored: %s holds checkpoint_last.pt, and the run goes on from there.",
            checkpoint.finetune_from_model,
            checkpoint.save_dir,
        )

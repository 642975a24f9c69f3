"""When to stop: after so many validations at epoch ends without progress, restarts or not."""

import logging
from typing import Any, Optional

from omegaconf import DictConfig

from pyramidions.files.progress import counted
from pyramidions.plugin.tasks.run_config import end_run

logger = logging.getLogger(__name__)


class StoppingRule:
    """Ends a run when its score has not improved for a number of validations (Pietruszka et al. 2022, appendix D.1).

    fairseq's own --patience counts validations in mid-epoch as well, and counts from zero when a run restarts. This
    one counts those at the ends of epochs only, and its count travels in the checkpoint.

    Args:
        patience: validations without progress after which the run ends; 0 never ends it.
        run: the config of the whole run.
    """

    def __init__(self, patience: int, run: DictConfig) -> None:
        self.patience = patience
        self.run = run
        self.best: Optional[float] = None
        self.without_progress = 0

    def validated(self, score: float) -> None:
        """Take note of the score of a validation at an epoch's end, and end the run if it is due."""
        sign = 1 if self.run.checkpoint.maximize_best_checkpoint_metric else -1
        if self.best is None or sign * score > sign * self.best:
            self.best, self.without_progress = score, 0
        else:
            self.without_progress += 1
        self._stop_if_due()

    def state_dict(self) -> dict[str, Any]:
        """Return what travels in the checkpoint."""
        return {"best": self.best, "without_progress": self.without_progress}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on counting where the interrupted run was."""
        self.best, self.without_progress = state["best"], state["without_progress"]
        self._stop_if_due()

    def _stop_if_due(self) -> None:
        if 0 < self.patience <= self.without_progress:
            logger.info(
                "%s has not improved on %g for %s at epoch ends (--stopping-patience %d): the run ends. "
                "fairseq's log will give the minimum learning rate as the reason.",
                self.run.checkpoint.best_checkpoint_metric,
                self.best,
                counted(self.without_progress, "validation"),
                self.patience,
            )
            end_run(self.run)

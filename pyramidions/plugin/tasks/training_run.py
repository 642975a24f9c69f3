"""What a training does beside fairseq's own: checkpoints stay whole, it stops in time, and it resumes exactly."""

import logging
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from fairseq.checkpoint_utils import save_checkpoint
from omegaconf import DictConfig
from torch import distributed, nn

from pyramidions.base.errors import UserError
from pyramidions.files.progress import counted
from pyramidions.plugin.hooks import end_run
from pyramidions.plugin.tasks.checkpoint_folder import CheckpointFolder
from pyramidions.plugin.tasks.learning import ScorerRate
from pyramidions.plugin.tasks.start import Start
from pyramidions.plugin.tasks.timely_saves import TimelySaves
from pyramidions.plugin.tasks.validation import check_best_metric, check_best_of_update

logger = logging.getLogger(__name__)


class StoppingRule:
    """Ends a run when its score has not improved for a number of validations (Pietruszka et al. 2022, appendix D.1).

    fairseq's own --patience counts validations in mid-epoch as well, and counts from zero when a run restarts. This
    one counts those at the ends of epochs only, and its count travels in the checkpoint.
    """

    def __init__(self, patience: int, run: DictConfig) -> None:
        self.patience = patience
        self.run = run
        self.best: Optional[float] = None
        self.without_progress = 0

    def validated(self, score: float) -> None:
        """Take note of the score of a validation at an epoch's end, and end the run if it is due."""
        sign = 1 if self.run.checkpoint.maximize_best_checkpoint_metric else -1
        # Any number is progress on none.
        best = self.best
        if best is None or (math.isnan(best) and not math.isnan(score)) or sign * score > sign * best:
            self.best, self.without_progress = score, 0
        else:
            self.without_progress += 1
        self._stop_if_due()

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "without_progress": self.without_progress}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.without_progress = state["best"], state["without_progress"]
        self._stop_if_due()

    def _stop_if_due(self) -> None:
        if 0 < self.patience <= self.without_progress:
            logger.info(
                "%s has not improved on %g for %s at epoch ends (--stopping-patience %d): the run ends.",
                self.run.checkpoint.best_checkpoint_metric,
                self.best,
                counted(self.without_progress, "validation"),
                self.patience,
            )
            end_run(self.run)


class TrainingRun:
    """A run of fairseq-train; fairseq's hooks call it before and after each event."""

    start: Start

    def __init__(self, run: DictConfig, patience: int) -> None:
        self.run = run
        self.stopping = StoppingRule(patience, run)
        self.epoch: Any = None
        self._folder = CheckpointFolder(
            Path(run.checkpoint.save_dir).absolute(), not run.checkpoint.no_last_checkpoints
        )
        self._timely = TimelySaves(run)
        self._rate: Optional[ScorerRate] = None
        # of the last validation, if nothing was trained since
        self._score: Optional[float] = None
        self._seen: Optional[int] = None
        self._is_checked = False

    def begin(self) -> None:
        """Mend what an interrupted run left, before fairseq reads it; end the run if nothing is left to do."""
        if self.run.checkpoint.write_checkpoints_asynchronously:
            raise UserError(
                "--write-checkpoints-asynchronously must not be given: what is written in the background cannot be "
                "verified before older checkpoints are deleted."
            )
        if self.run.ema.store_ema:
            raise UserError(
                "--store-ema must not be given: fairseq averages each tensor, also the number of a vocabulary."
            )
        together = distributed.is_available() and distributed.is_initialized()
        try:
            # A run that writes nothing leaves the folder to one that does.
            if self.run.distributed_training.distributed_rank == 0 and not self.run.checkpoint.no_save:
                self._folder.hold()
                self._folder.mend()
        finally:
            if together:
                distributed.barrier()
        self.start = Start(self.run)
        self._end_finished()
        # The plugin is loaded by now; where it lies on this machine is nothing that checkpoints should tell.
        self.run.common.user_dir = None

    def _end_finished(self) -> None:
        """End the run if it resumes one that is finished."""
        resumed, optimization = self.start.resumed, self.run.optimization
        if resumed is None:
            return
        updates, hours = optimization.max_update or math.inf, optimization.stop_time_hours or math.inf
        if resumed.updates >= updates:
            reason = f"it has {resumed.updates} updates (--max-update {updates})"
        # Without a validation there is no best checkpoint yet: one more update comes, and one with it.
        elif resumed.seconds > 3600 * hours and (resumed.best is not None or self.run.dataset.disable_validation):
            reason = f"it took {resumed.seconds / 3600:.2f} hours (--stop-time-hours {hours:g})"
        else:
            return
        logger.info("The run of %s is finished, %s: nothing is trained or written.", self.start.path, reason)
        end_run(self.run)

    def trains(self, model: nn.Module, rate: Optional[ScorerRate] = None) -> None:
        """Take note of the model and of its scorers' rate, before a checkpoint is loaded into it."""
        self.start.check_frozen(model)
        self.start.check_order(model)
        self._rate = rate

    def before_step(self, update: int, optimizer: Any) -> None:
        """Take note that training goes on after so many updates: checkpoints are loaded, and the last save is over."""
        self._score = None
        self._folder.nothing_saved()
        self._timely.before_step(update)
        if self._rate is not None:
            self._rate.follow(optimizer)

    def updated(self, update: int, model: nn.Module) -> None:
        """Take note that an update, counted from 1, is done."""
        if self.epoch is not None:
            self._timely.updated(update, self.epoch, next(model.parameters()).device)

    def before_saving(self) -> None:
        """Move aside what fairseq is about to overwrite, and have it record the config of the run."""
        self._timely.before_saving()
        self._folder.before_saving(self._score is not None and self._score == getattr(save_checkpoint, "best", None))

    def saved(self, first: str) -> None:
        """Verify what fairseq has written: ``first``, and its copies."""
        self._folder.saved(Path(first))
        self._timely.saved(first)

    def logged(self, metrics: Iterable[str], criterion: Any) -> None:
        """Take note of the metrics that validation will log, known from the first update on."""
        if not self._is_checked:
            check_best_of_update(self.run, metrics, criterion)
            self._is_checked = True

    def validated(self, stats: dict[str, Any]) -> None:
        """Take note of a validation's metrics, by name; of several subsets the first counts, as for fairseq."""
        if stats["num_updates"] == self._seen:
            return
        check_best_metric(self.run, stats)
        self._seen = stats["num_updates"]
        self._score = float(stats[self.run.checkpoint.best_checkpoint_metric])
        if self.epoch is not None and self.epoch.end_of_epoch():
            self.stopping.validated(self._score)

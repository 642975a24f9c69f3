"""Saves a training in mid-epoch by the clock, and when it is interrupted.

fairseq saves in mid-epoch after so many updates only, and validates each time. Its loop reads the config anew for each
update: for one of them it finds there that it shall save and not validate.
"""

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Optional

import torch
from omegaconf import DictConfig, OmegaConf
from torch import distributed

logger = logging.getLogger(__name__)


def pause(took: float) -> float:
    """Return the seconds between two saves, if one takes ``took``: saving costs at most a twentieth of the time."""
    return max(300.0, 20 * took)


class TimelySaves:
    """Saves a run every few minutes, and when SIGINT or SIGTERM interrupts it, which then ends.

    Such a save comes after an update and writes `checkpoint_last.pt` alone. It is never made where fairseq would save
    or validate anyway, at the end of an epoch above all: a run that goes on ends like one that was not interrupted. A
    second SIGINT ends the run at once.
    """

    def __init__(self, run: DictConfig) -> None:
        self._run = run
        self._given: dict[tuple[str, str], Any] = {}
        self._saved_at: Optional[float] = None
        self._saves_since, self._took = 0.0, 0.0
        self._signal, self._update = 0, 0
        self._ends = False

    def before_step(self, update: int) -> None:
        """Take note that training goes on after so many updates; end an interrupted run once it is saved."""
        self._give_back()
        self._given = {}
        # Mixed precision repeats an update that overflows. It is neither counted nor saved before it succeeds.
        if self._ends and update >= self._update:
            logger.info("Interrupted: update %d is saved, and the same command goes on from there.", self._update)
            sys.exit(128 + self._signal)
        if self._saved_at is not None or self._run.checkpoint.no_save or self._run.checkpoint.no_last_checkpoints:
            return
        self._saved_at = time.monotonic()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._interrupt)

    def updated(self, update: int, epoch: Any, device: torch.device) -> None:
        """Have fairseq save after this update, if it is time."""
        if self._saved_at is None:
            return
        is_first = self._run.distributed_training.distributed_rank == 0
        is_due = is_first and time.monotonic() - self._saved_at > pause(self._took)
        # All workers save and end at the same update.
        self._signal, is_due = _highest(self._signal, is_due, device)
        checkpoint, dataset, optimization = self._run.checkpoint, self._run.dataset, self._run.optimization
        end_of_epoch = epoch.end_of_epoch()
        saves = end_of_epoch and epoch.epoch % checkpoint.save_interval == 0
        if update >= dataset.validate_after_updates:
            saves = saves or _is_multiple(update, checkpoint.save_interval_updates)
        validates = _is_multiple(update, dataset.validate_interval_updates) or update >= (
            optimization.max_update or update + 1
        )
        ours = (self._signal or is_due) and not (end_of_epoch or saves or validates)
        self._ends, self._update = bool(self._signal and (saves or ours)), update
        if ours:
            for group, name, value in (
                ("checkpoint", "save_interval_updates", update),
                # Nothing older is deleted.
                ("checkpoint", "keep_interval_updates", -1),
                ("dataset", "validate_after_updates", 0),
                ("dataset", "disable_validation", True),
                # The end of the time, if it is now, comes with the next update and its validation.
                ("optimization", "stop_time_hours", 0.0),
            ):
                self._given[group, name] = self._run[group][name]
                self._run[group][name] = value

    def before_saving(self) -> None:
        """Have fairseq record the run's config, without the changes for this save."""
        self._saves_since = time.monotonic()
        if self._given:
            # fairseq still reads the old group: it deletes nothing older.
            self._run.checkpoint = OmegaConf.merge(self._run.checkpoint)
            self._give_back()

    def saved(self, first: str) -> None:
        if self._given and Path(first).match(f"checkpoint_*_{self._update}*.pt"):
            Path(first).unlink()
        self._saved_at = time.monotonic()
        self._took = self._saved_at - self._saves_since

    def _give_back(self) -> None:
        for (group, name), value in self._given.items():
            self._run[group][name] = value

    def _interrupt(self, number: int, _: object) -> None:
        self._signal = number
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
        if self._run.distributed_training.distributed_rank == 0:
            # A signal can arrive in the middle of a print, and print cannot be called again then.
            os.write(
                2, b"Interrupted: this update, or validation, is finished and saved first. Ctrl-C ends it at once.\n"
            )


def _is_multiple(update: int, interval: int) -> bool:
    return interval > 0 and update % interval == 0


def _highest(number: int, is_due: bool, device: torch.device) -> tuple[int, bool]:
    """Return the highest values of all workers."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return number, is_due
    both = torch.tensor([number, int(is_due)], device=device)
    distributed.all_reduce(both, distributed.ReduceOp.MAX)
    return int(both[0]), bool(both[1])

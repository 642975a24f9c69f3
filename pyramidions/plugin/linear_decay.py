"""A learning rate that falls to 0 at the end of a run, whether updates or hours end it."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II
from torch import distributed

from pyramidions.base.arguments import described
from pyramidions.base.errors import UserError


@dataclass
class LinearDecayConfig(FairseqDataclass):
    """Options of `--lr-scheduler linear_decay`."""

    warmup_updates: int = described(0, "updates in which the learning rate rises to --lr")
    lr: list[float] = II("optimization.lr")  # noqa: RUF009 (how fairseq fills the fields of a dataclass)
    max_update: int = II("optimization.max_update")
    stop_time_hours: float = II("optimization.stop_time_hours")


@register_lr_scheduler("linear_decay", dataclass=LinearDecayConfig)
class LinearDecay(FairseqLRScheduler):
    """Raises the learning rate linearly, then lowers it linearly to 0 at the end of the run.

    The run ends after ``--max-update`` updates or ``--stop-time-hours``, whichever comes first: the rate is the peak,
    times the share of updates or of hours that is left, whichever is smaller. fairseq's ``polynomial_decay`` knows
    updates alone, and a run that hours end keeps a high rate to its last update.

    Hours of a resumed run count on, but not those before it changed to this schedule. All workers follow the clock of
    the first.
    """

    def __init__(self, cfg: Any, optimizer: Any) -> None:
        super().__init__(cfg, optimizer)
        if len(cfg.lr) != 1:
            raise UserError(f"--lr must be one learning rate for --lr-scheduler linear_decay, but is {list(cfg.lr)}.")
        if cfg.max_update <= 0 and cfg.stop_time_hours <= 0:
            raise UserError("--lr-scheduler linear_decay needs the end of the run: --max-update or --stop-time-hours.")
        if 0 < cfg.max_update <= cfg.warmup_updates:
            raise UserError(
                f"--warmup-updates must be below --max-update ({cfg.max_update}), but is {cfg.warmup_updates}."
            )
        self._earlier, self._begun = 0.0, time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        """Return what travels in the checkpoint: the seconds of training so far."""
        return {**super().state_dict(), "seconds": self._seconds()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint; one of another scheduler counts no seconds."""
        super().load_state_dict(state_dict)
        self._earlier, self._begun = state_dict.get("seconds", 0.0), time.monotonic()

    def step_update(self, num_updates: int) -> float:
        """Set and return the learning rate of the next update, after so many."""
        rising = (num_updates + 1) / self.cfg.warmup_updates if self.cfg.warmup_updates > 0 else 1.0
        # The decay by updates begins behind the warm-up, that by hours at once.
        left = 1.0
        if self.cfg.max_update > 0:
            left = (self.cfg.max_update - num_updates) / max(1, self.cfg.max_update - self.cfg.warmup_updates)
        if self.cfg.stop_time_hours > 0:
            left = min(left, 1 - self._shared_seconds() / (3600 * self.cfg.stop_time_hours))
        self.optimizer.set_lr(self.cfg.lr[0] * max(0.0, min(rising, left, 1.0)))
        return float(self.optimizer.get_lr())

    def _seconds(self) -> float:
        return self._earlier + time.monotonic() - self._begun

    def _shared_seconds(self) -> float:
        seconds = self._seconds()
        if not (distributed.is_available() and distributed.is_initialized()):
            return seconds
        first = torch.tensor(seconds, dtype=torch.float64, device=next(iter(self.optimizer.params)).device)
        distributed.broadcast(first, src=0)
        return first.item()

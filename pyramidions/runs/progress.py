"""One bar for a training, from what its log in JSON says."""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

from pyramidions.base.notes import note
from pyramidions.files.progress import counted, progress_bar
from pyramidions.files.run_facts import RunFacts

_MEASURED = 20.0  # seconds of updates from which the others are forecast


class Record(NamedTuple):
    """What a line says: whether it is about training or a validation, its last update, and its numbers by name."""

    is_training: bool
    update: int
    values: dict[str, float]


def read_record(line: str) -> Record | None:
    """Return the numbers in a line of fairseq-train's log in JSON; None if it has none."""
    begin = line.find('{"epoch"')
    if begin < 0:
        return None
    try:
        texts = json.loads(line[begin:], parse_int=float)
    except (ValueError, RecursionError):
        return None  # torn by a kill
    # At the end of an epoch, names begin with the split: "valid_num_updates".
    split = next((name for name in texts if name.endswith("num_updates")), "num_updates").removesuffix("num_updates")
    values = {name.removeprefix(split): _number(text) for name, text in texts.items()}
    update = values.pop("num_updates", -1)
    # Of a split, only training tells how long it took.
    return Record(not split or "wall" in values, round(update), values) if 0 <= update < 1e12 else None


def _number(text: object) -> float:
    try:
        return float(text) if isinstance(text, (str, float)) else math.nan
    except ValueError:
        return math.nan


def as_time(hours: float) -> str:
    minutes = 60 * hours
    return counted(max(round(minutes), 1), "minute") if minutes < 120 else f"{hours:,.0f} hours"


@dataclass
class Progress:
    """Where a training is."""

    metric: str = "loss"  # the one that the best checkpoint is chosen by
    highest: bool = False  # whether its highest value is the best
    updates: int = 0  # done so far
    loss: float | None = None  # of the last interval
    best: float | None = None  # value of the metric in validation so far

    def read(self, line: str) -> None:
        """Take note of a line of the log."""
        record = read_record(line) if "num_updates" in line else None
        if record is None:
            return
        self.updates = max(self.updates, record.update)
        if record.is_training:
            self.loss = record.values.get("loss", self.loss)
        elif math.isfinite(value := record.values.get(self.metric, math.nan)):
            better = max if self.highest else min
            self.best = value if self.best is None else better(self.best, value)

    def __str__(self) -> str:
        parts = [] if self.loss is None else [f"loss {self.loss:.2f}"]
        parts += [] if self.best is None else [f"best validation {self.metric} {self.best:.2f}"]
        return ", ".join(parts)


def begun(words: tuple[str, ...], checkpoint: Path) -> tuple[Progress, float]:
    """Return where a training is before its command runs, and the hours that it took so far."""
    metric = words[words.index("--best-checkpoint-metric") + 1] if "--best-checkpoint-metric" in words else "loss"
    progress = Progress(metric, "--maximize-best-checkpoint-metric" in words)
    facts = RunFacts.of(checkpoint) if checkpoint.is_file() else None
    if facts is None:
        return progress, 0.0
    progress.updates, progress.best = facts.updates, facts.best
    return progress, facts.seconds / 3600


class NewLines:
    """Reads the lines that a process appends to a file from now on."""

    def __init__(self, path: Path) -> None:
        self._path, self._rest = path, ""
        self._file = self._open()
        if self._file is not None:
            self._file.seek(0, 2)

    def read(self) -> list[str]:
        self._file = self._file or self._open()
        if self._file is None:
            return []
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        return lines

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> TextIO | None:
        return self._path.open(encoding="utf-8", errors="replace") if self._path.exists() else None


class TrainingBar:
    """Shows the updates of a training that runs, towards its end.

    What the log holds already is passed over.
    """

    def __init__(self, log: Path, progress: Progress, updates: int, hours: float | None) -> None:
        self.progress = progress
        self._most, self._hours = updates, hours
        self._before, self._start = progress.updates, time.monotonic()
        self._first: tuple[float, int] | None = None
        self._is_forecast = False
        self._log = NewLines(log)
        self._bar = progress_bar("training", updates, "updates", progress.updates)

    def __enter__(self) -> "TrainingBar":
        return self

    def __exit__(self, *_: object) -> None:
        self.show()
        self._bar.close()
        self._log.close()

    def show(self) -> None:
        """Read the new part of the log."""
        lines = self._log.read()
        for line in lines:
            self.progress.read(line)
        if lines:
            now = time.monotonic()
            self._bar.total = max(self._end(now), self.progress.updates)
            self._bar.set_postfix_str(str(self.progress), refresh=False)
            self._bar.update(self.progress.updates - self._bar.n)
            self._forecast(now)

    def _forecast(self, now: float) -> None:
        """Say once, from the first updates, how long it takes on this machine."""
        if self._first is None:
            # What comes before the first update is no training.
            self._first = (now, self.progress.updates) if self.progress.updates > self._before else None
            return
        seconds, done = now - self._first[0], self.progress.updates - self._first[1]
        if self._is_forecast or done < 3 or seconds < _MEASURED:
            return
        self._is_forecast = True
        left = (self._bar.total - self.progress.updates) * seconds / done
        note(
            f"Measured: {seconds / done:.2g} seconds an update, so about {as_time(left / 3600)} more beside validation."
        )

    def _end(self, now: float) -> int:
        """Return the update with which it ends, as things stand."""
        done, seconds = self.progress.updates - self._before, now - self._start
        if self._hours is None or not done:
            return self._most
        return min(self._most, self._before + round(done * self._hours * 3600 / seconds))

"""Logs of fairseq-train and fairseq-hydra-train: where that of a run lies, what to call the run, and its curves."""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyramidions.errors import UserError

#: Split of the training curve; a validation curve has the name of its subset, such as "valid".
TRAIN = "train"
#: fairseq's name of the means over intervals.
INTERVAL = "train_inner"
_LONGEST = 1 << 16  # characters of a line; fairseq's have about a thousand
_KEPT = re.compile(r"(?:nll_)?loss|rouge\w{0,20}|sharpness_\d{1,4}", re.ASCII)
_SUBSET = re.compile(r"valid on '([^']*)' subset")
_RESUMED = re.compile(r"\(epoch \d{1,9} @ (\d{1,12}) updates\)|No existing checkpoint found")
# How a line begins, and its numbers; what follows a number shows that it is whole.
_JSON = re.compile(r'\{"epoch"'), re.compile(r'"(\w+)": "?([-+.\w]+)(?=[",}])')
_INTERVAL = re.compile(r"\bepoch \d{1,9}: "), re.compile(r"\b(\w+)=([-+.\w]+)(?=[,\]])")
_EPOCH = re.compile(r"\bepoch \d{1,9} (?=\|)"), re.compile(r"\| (\w+) ([-+.\w]+)(?= \||\n)")
_USUAL = "train.log"  # as `python -m lab reproduce` calls the log of a training
_NAMED = 5  # logs that an error names
_WRONG = "RUN must be a log of fairseq-train or a folder with one, but"
_LINE = "line of training or validation with num_updates"


class Curve(NamedTuple):
    """One measure over the updates of a run.

    Attributes:
        split: `TRAIN`, or the validation subset.
        measure: "loss", "nll_loss" if the log has no "loss", "rouge...", or "sharpness_N" of encoder layer N.
        points: update and value, by update.
    """

    split: str
    measure: str
    points: tuple[tuple[int, float], ...]


class TrainingLog(NamedTuple):
    """What a log says about a training.

    Attributes:
        curves: the training curves first.
        left_out: how many values were nan or infinite and are not in the curves, by measure.
    """

    curves: tuple[Curve, ...]
    left_out: Mapping[str, int]

    @property
    def updates(self) -> int:
        """Return the last update with a point."""
        return max((curve.points[-1][0] for curve in self.curves), default=0)

    def of(self, *measures: str) -> tuple[Curve, ...]:
        """Return the curves whose measure begins with one of these words, the training curves first."""
        return tuple(curve for curve in self.curves if curve.measure.startswith(measures))


class Record(NamedTuple):
    """What a line says.

    Attributes:
        split: `TRAIN`, `INTERVAL` or the validation subset.
        update: the last one that it is about.
        values: numbers by measure, as in `Curve`.
    """

    split: str
    update: int
    values: Mapping[str, float]


def read_training_log(path: Path) -> TrainingLog:
    """Read the curves in a log of fairseq 0.12 in any of its formats.

    fairseq logs means over intervals and over epochs; the training curve has whichever are more. What a killed run
    had done after the checkpoint from which it was resumed is dropped. Torn and foreign lines are skipped.

    Raises:
        OSError: the file cannot be read.
    """
    splits: dict[str, dict[int, Mapping[str, float]]] = {}
    resumed: int | None = None
    latest = -1
    for found in _entries(path):
        if isinstance(found, int):
            # Nothing is dropped before something takes its place.
            resumed = found
            continue
        # A log may lack the message of a start: updates that go back tell the same.
        if resumed is not None or found.update < latest:
            last = min(found.update if resumed is None else resumed, found.update - 1)
            splits = {split: {n: v for n, v in lines.items() if n <= last} for split, lines in splits.items()}
            resumed = None
        latest = found.update
        splits.setdefault(found.split, {})[found.update] = found.values
    return _log(splits)


def is_training_log(path: Path) -> bool:
    """Return whether a file has a line of fairseq's training or validation."""
    return any(isinstance(found, Record) for found in _entries(path))


def _log(splits: Mapping[str, Mapping[int, Mapping[str, float]]]) -> TrainingLog:
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for split, lines in splits.items():
        for update, values in lines.items():
            for measure, value in values.items():
                found.setdefault((split, measure), []).append((update, value))
    for key in [key for key in found if key[0] == INTERVAL]:
        coarse, fine = found.get((TRAIN, key[1]), []), found.pop(key)
        found[TRAIN, key[1]] = max(coarse, fine, key=len)
    curves: list[Curve] = []
    left_out: dict[str, int] = {}
    for (split, measure), points in found.items():
        finite = tuple(point for point in points if math.isfinite(point[1]))
        if len(finite) < len(points):
            left_out[measure] = left_out.get(measure, 0) + len(points) - len(finite)
        if finite:
            curves.append(Curve(split, measure, finite))
    return TrainingLog(tuple(sorted(curves, key=lambda curve: curve.split != TRAIN)), left_out)


def _entries(path: Path) -> Iterator[Record | int]:
    """Yield lines with numbers and, where training starts, the last update of its checkpoint; -1 without one."""
    # A progress bar overwrites its line: "\r" ends a line as well.
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for line in iter(partial(file.readline, _LONGEST), ""):
            if "checkpoint" in line and (match := _RESUMED.search(line)):
                yield int(match[1] or -1)
            elif "num_updates" in line and (found := read_record(line)):
                yield found


def read_record(line: str) -> Record | None:
    """Return the numbers in a line; None if it has none."""
    style = next((style for style in (_JSON, _INTERVAL, _EPOCH) if style[0].search(line)), None)
    if style is None:
        return None
    texts = dict(style[1].findall(line))
    split = INTERVAL
    if style is _EPOCH:
        subset = _SUBSET.search(line)
        split = _validated(subset[1]) if subset else TRAIN
    elif ends := [key for key in texts if key.endswith("_num_updates")]:
        # At the end of an epoch, keys of JSON begin with the split. Only training tells how long it took.
        prefix = ends[0].removesuffix("num_updates")
        split = TRAIN if prefix == "train_" and "train_wall" in texts else _validated(prefix[:-1])
        texts = {key.removeprefix(prefix): text for key, text in texts.items()}
    numbers = {name: _number(text) for name, text in texts.items() if name == "num_updates" or _KEPT.fullmatch(name)}
    values = {name: number for name, number in numbers.items() if number is not None}
    # Large ones are written as "1.23457e+06".
    update = values.pop("num_updates", -1)
    if "loss" in values:
        values.pop("nll_loss", None)
    return Record(split, round(update), values) if values and 0 <= update < 1e12 else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _validated(subset: str) -> str:
    """Return the split of a validation, which differs from that of the training even on the same documents."""
    return f"{subset} (validation)" if subset in (TRAIN, INTERVAL) else subset


def find_log(run: Path) -> Path:
    """Return the log of a run.

    Args:
        run: a log, or a folder: train.log in it, else the only log of a training in it, else the only one below it.

    Raises:
        UserError: there is no log of a training, or several.
    """
    if run.is_file():
        if not is_training_log(run):
            raise UserError(f"{_WRONG} {run} has no {_LINE} (--log-format none writes none).")
        return run
    if not run.is_dir():
        raise UserError(f"{_WRONG} {run} does not exist.")
    for pattern in (_USUAL, "*.log", "**/*.log"):
        found = [path for path in sorted(run.glob(pattern)) if path.is_file() and is_training_log(path)]
        if len(found) > 1:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            named = f"{', '.join(map(str, found[:_NAMED]))}{more}"
            raise UserError(f"RUN must hold one log of a training, but {run} holds {len(found)}: choose among {named}.")
        if found:
            return found[0]
    raise UserError(f"{_WRONG} no *.log in {run} has a {_LINE}.")


def run_names(runs: Sequence[Path]) -> list[str]:
    """Return a name for each run: its path below the folder that all share, and the last part of a single one.

    Args:
        runs: logs and folders; train.log is called after its folder.
    """
    paths = [os.path.abspath(run) for run in runs]  # noqa: PTH100  (resolves `..` and keeps the names of links)
    named = [path.removesuffix(f"/{_USUAL}").removesuffix(".log") for path in paths]
    if len(set(named)) < len(named):
        return [_printable(str(run)) for run in runs]
    shared = os.path.commonpath(named) if len(named) > 1 else os.path.dirname(named[0])  # noqa: PTH120
    return [_printable(os.path.relpath(name, shared) if name != shared else Path(name).name) for name in named]


def _printable(name: str) -> str:
    """Return a name as one line of valid UTF-8."""
    text = os.fsencode(name).decode(errors="replace")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)

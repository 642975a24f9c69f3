"""What fairseq-train and fairseq-hydra-train write about a training, read back from their logs."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

#: Split of the training curve; a validation curve has the name of its subset, such as "valid".
TRAIN = "train"
_INNER = "train_inner"  # fairseq's name of the means over intervals
_LONGEST = 1 << 16  # characters of a line; fairseq's have about a thousand
_KEPT = re.compile(r"(?:nll_)?loss|rouge\w{0,20}|sharpness_\d{1,4}", re.ASCII)
_SUBSET = re.compile(r"valid on '(.*?)' subset")
_RESUMED = re.compile(r"Loaded checkpoint .*\(epoch \d{1,9} @ (\d{1,12}) updates\)|No existing checkpoint found")
# How a line begins, and its numbers; what follows a number shows that it is whole.
_JSON = re.compile(r'\{"epoch"'), re.compile(r'"(\w+)": "?([-+.\w]+)(?=[",}])')
_INTERVAL = re.compile(r"\bepoch \d{1,9}: "), re.compile(r"(\w+)=([-+.\w]+)(?=[,\]])")
_EPOCH = re.compile(r"\bepoch \d{1,9} (?=\|)"), re.compile(r"\| (\w+) ([-+.\w]+)(?= \||\n)")


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


class _Record(NamedTuple):
    """One line with numbers."""

    split: str
    update: int
    values: Mapping[str, float]


class _Resumed(NamedTuple):
    """A start of the training, and the last update of its checkpoint; -1 without a checkpoint."""

    update: int


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
        if isinstance(found, _Resumed):
            # Nothing is dropped before something takes its place.
            resumed = found.update
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
    return any(isinstance(found, _Record) for found in _entries(path))


def _log(splits: Mapping[str, Mapping[int, Mapping[str, float]]]) -> TrainingLog:
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for split, lines in splits.items():
        for update, values in lines.items():
            for measure, value in values.items():
                found.setdefault((split, measure), []).append((update, value))
    for key in [key for key in found if key[0] == _INNER]:
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


def _entries(path: Path) -> Iterator[_Record | _Resumed]:
    # A progress bar overwrites its line: "\r" ends a line as well.
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for line in iter(partial(file.readline, _LONGEST), ""):
            if "checkpoint" in line and (match := _RESUMED.search(line)):
                yield _Resumed(int(match[1] or -1))
            elif "num_updates" in line and (found := _record(line)):
                yield found


def _record(line: str) -> _Record | None:
    style = next((style for style in (_JSON, _INTERVAL, _EPOCH) if style[0].search(line)), None)
    if style is None:
        return None
    texts = dict(style[1].findall(line))
    split = _INNER
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
    return _Record(split, round(update), values) if values and 0 <= update < 1e12 else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _validated(subset: str) -> str:
    """Return the split of a validation, which differs from that of the training even on the same documents."""
    return f"{subset} (validation)" if subset in (TRAIN, _INNER) else subset

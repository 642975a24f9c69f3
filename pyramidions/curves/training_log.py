"""What fairseq-train and fairseq-hydra-train write about a training, read back from their logs."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from pyramidions.curves.stretches import Stretch, training_curve

#: Split of the training curve; that of a validation curve is its subset, as "valid".
TRAIN = "train"
_INNER = "train_inner"
_LOSSES = ("loss", "nll_loss")  # the first that a line has is kept
_LONGEST = 1 << 16  # characters of a line; fairseq's have about a thousand
_KEPT = re.compile(r"rouge\w{0,20}|sharpness_\d{1,4}", re.ASCII)
# "epoch 001:     11 / 50 loss=11.501, ..." within an epoch, "epoch 001 | loss 11.387 | ..." at its end.
_EPOCH = re.compile(r"\bepoch (\d{1,9})(: | \| )")
_SUBSET = re.compile(r"valid on '(.*)' subset")
_RESUMED = re.compile(r"Loaded checkpoint .*\(epoch (\d{1,9}) @ (\d{1,12}) updates\)|No existing checkpoint found")


class Curve(NamedTuple):
    """One measure over the updates of a run.

    Attributes:
        split: `TRAIN`, or the subset that was validated on.
        measure: "loss", "nll_loss" where the log has no "loss", "rouge...", or "sharpness_N" of encoder layer N.
        points: update and value, by update.
    """

    split: str
    measure: str
    points: tuple[tuple[int, float], ...]


class TrainingLog(NamedTuple):
    """What a log says about a training.

    Attributes:
        curves: what was measured, the training curves first.
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
    """One line with numbers: the split and where it stands, what we keep of it, and how large an update was."""

    split: str
    epoch: int
    update: int
    values: Mapping[str, float]
    tokens: float
    documents: float


class _Resumed(NamedTuple):
    """A start of the training: its epoch, and the last update that its checkpoint knows; -1 without a checkpoint."""

    epoch: int
    update: int


class _Line(NamedTuple):
    """A record, and the last update before those whose mean it is; of a validation, that is its own update."""

    since: int
    record: _Record


def read_training_log(path: Path) -> TrainingLog:
    """Read the curves in a log of fairseq 0.12 in any of its formats.

    The training curve is made of the lines within epochs and of those at their ends, the finer ones first, and ends
    where the last of them does (`training_curve`). Where a killed run was resumed, what it had done after its
    checkpoint is dropped. Torn lines and foreign ones are skipped.

    Raises:
        OSError: the file cannot be read.
    """
    lines: dict[str, dict[int, _Line]] = {}
    begun, resumed, latest = _Resumed(0, -1), False, -1
    for found in _entries(path):
        if isinstance(found, _Resumed):
            # Nothing is dropped before there is something in its place.
            begun, resumed = found, True
            continue
        # A log may lack the messages of a start: updates that go back say the same.
        if resumed or found.update < latest:
            _drop_after(min(begun.update if resumed else found.update, found.update - 1), lines)
            resumed = False
        latest = found.update
        lines.setdefault(found.split, {})[found.update] = _Line(_since(found, lines, begun), found)
    return _log(lines)


def is_training_log(path: Path) -> bool:
    """Return whether a file has a line of fairseq's training or validation."""
    return any(isinstance(found, _Record) for found in _entries(path))


def _drop_after(update: int, lines: Mapping[str, dict[int, _Line]]) -> None:
    # Updates only ever grow within a split, so that the last one in is the greatest.
    for of_split in lines.values():
        while of_split and next(reversed(of_split)) > update:
            of_split.popitem()


def _since(found: _Record, lines: Mapping[str, dict[int, _Line]], begun: _Resumed) -> int:
    """Return the last update before those whose mean a record is.

    Args:
        found: the record.
        lines: those before it, by split.
        begun: the last start of the training.
    """
    if found.split not in (TRAIN, _INNER):
        return found.update
    before = reversed(lines.get(found.split, {}).items())
    last = next((line for update, line in before if update < found.update), None)
    if last is None:
        return min(max(begun.update, 0), found.update - 1)
    # fairseq's means go on from a checkpoint within an epoch, also where the run had ended there and printed them, and
    # start anew from one at an epoch's end.
    ended = lines.get(TRAIN, {}).get(begun.update)
    if ended is not None and ended.record.epoch < begun.epoch:
        return max(last.record.update, begun.update)
    return last.since if last is ended else last.record.update


def _log(lines: Mapping[str, Mapping[int, _Line]]) -> TrainingLog:
    points: dict[tuple[str, str], list[Stretch]] = {}
    for split, of_split in lines.items():
        for since, record in of_split.values():
            for measure, value in record.values.items():
                weight = record.tokens if measure in _LOSSES else record.documents
                key = (TRAIN if split == _INNER else split, measure)
                points.setdefault(key, []).append(Stretch(since, record.update, value, weight))
    curves: list[Curve] = []
    left_out: dict[str, int] = {}
    for (split, measure), stretches in points.items():
        if not all(stretch.weight for stretch in stretches):
            stretches = [stretch._replace(weight=1.0) for stretch in stretches]
        every = training_curve(stretches) if split == TRAIN else stretches
        finite = tuple((stretch.until, stretch.value) for stretch in every if math.isfinite(stretch.value))
        if len(finite) < len(every):
            left_out[measure] = left_out.get(measure, 0) + len(every) - len(finite)
        if finite:
            curves.append(Curve(split, measure, finite))
    return TrainingLog(tuple(sorted(curves, key=lambda curve: curve.split != TRAIN)), left_out)


def _entries(path: Path) -> Iterator[_Record | _Resumed]:
    # A progress bar writes its states one over the other: "\r" ends a line as well.
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for line in _lines(file):
            if "checkpoint" in line and (match := _RESUMED.search(line)):
                yield _Resumed(int(match[1] or 0), int(match[2] or -1))
            elif "num_updates" in line and (found := _record(line)):
                yield found


def _lines(file: TextIO) -> Iterator[str]:
    return iter(partial(file.readline, _LONGEST), "")


def _record(line: str) -> _Record | None:
    start = line.find('{"epoch"')
    return _from_text(line) if start < 0 else _from_json(line[start:])


def _from_json(text: str) -> _Record | None:
    try:
        stats, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    # Within an epoch keys are bare, at its end they begin with the split: "valid_loss".
    ending = "_num_updates"
    split = next((key.removesuffix(ending) for key in stats if key.endswith(ending)), None)
    if split is None:
        return _made(_INNER, stats)
    stats = {key.removeprefix(f"{split}_"): value for key, value in stats.items()}  # "epoch" has none
    # Only training tells how long it took.
    return _made(split if split == TRAIN and "wall" in stats else _validated(split), stats)


def _from_text(line: str) -> _Record | None:
    match = _EPOCH.search(line)
    if match is None:
        return None
    fields = line[match.end() :].split("," if match[2] == ": " else " | ")
    split = TRAIN
    if match[2] == ": ":
        split = _INNER
        # What stands before the first key is the progress: "11 / 50 loss=11.501".
        pairs = [(key.split()[-1:], value.strip(" \n]")) for key, _, value in (f.partition("=") for f in fields)]
        stats = {key[0]: value for key, value in pairs if key}
    else:
        if subset := _SUBSET.fullmatch(fields[0].strip()):
            split = _validated(subset[1])
        stats = {key: value for key, _, value in (f.strip().partition(" ") for f in fields)}
    if (split == _INNER or not line.endswith("\n")) and next(reversed(stats), None) == "num_updates":
        # The line may be cut, by a kill or a progress bar in a narrow terminal: there may be more digits.
        return None
    return _made(split, {**stats, "epoch": match[1]})


def _validated(subset: str) -> str:
    """Return the split of a validation, which is another than that of the training even on the same documents."""
    return f"{subset} (validation)" if subset in (TRAIN, _INNER) else subset


def _made(split: str, stats: Mapping[str, Any]) -> _Record | None:
    update = _number(stats.get("num_updates"))
    # Large ones come as "1.23457e+06".
    if update is None or not 0 <= update < 1e12:
        return None
    loss = next((name for name in _LOSSES if name in stats), None)
    numbers = {key: _number(value) for key, value in stats.items() if key == loss or _KEPT.fullmatch(key)}
    values = {key: value for key, value in numbers.items() if value is not None}
    tokens, documents = (_size(stats.get(key)) for key in ("wpb", "bsz"))
    epoch = _number(stats.get("epoch"))
    epoch = round(epoch) if epoch is not None and 0 <= epoch < 1e9 else 0
    return _Record(split, epoch, round(update), values, tokens, documents) if values else None


def _size(value: Any) -> float:
    """Return the mean size of an update that a line names; 0 where it names none."""
    size = _number(value)
    return size if size is not None and 0 < size < 1e12 else 0.0


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None

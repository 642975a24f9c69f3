"""What the campaign of faults harms, and how what two runs made is compared."""

import filecmp
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pyramidions.files.archive import is_whole_checkpoint

Call = tuple[str, str, str, int]
Compare = Callable[[Path, Path], str | None]
COMMANDS = "commands"


@dataclass(frozen=True)
class Subject:
    """A command that is harmed, and what it makes.

    Attributes:
        name: by which it is chosen.
        group: `commands`, or the family of a training.
        command: its words for a folder in which it is to work.
        made: the names, in this folder, of what it makes.
        same: says what differs between what two runs made, or None.
        whole: says what is damaged in what a harmed run left (the first path), or None; an undisturbed run made the
            second. What is not there is not damaged.
        calls: fault, audit event, pattern of a path and number of each call at which it is harmed.
        drawn: calls of the same kind of which half of the repeats take one by chance, in place of a moment.
        begins: part of the line by which it shows that it has begun to work; without one, its first file does.
        twice: whether it is started twice at once.
    """

    name: str
    group: str
    command: Callable[[Path], list[str]]
    made: tuple[str, ...]
    same: Compare
    whole: Compare
    calls: tuple[Call, ...] = ()
    drawn: tuple[Call, ...] = ()
    begins: str | None = None
    twice: bool = True

    @property
    def trains(self) -> bool:
        """Whether it is a training, which does nothing when it is started again after its end."""
        return self.group != COMMANDS


def same(first: Path, second: Path) -> str | None:
    """Compare two files or two folders of files byte for byte."""
    if not first.exists():
        return f"{first.name} is missing"
    if first.is_dir():
        return _same_folder(first, second)
    return None if filecmp.cmp(first, second, shallow=False) else f"{first.name} differs from an undisturbed run's"


def absent_or_like(first: Path, second: Path) -> str | None:
    """Say what differs between a harmed run's result and the whole one, if there is any."""
    return same(first, second) if first.exists() else None


def at_ends(*names: str) -> tuple[Call, ...]:
    """Return the calls by which files of these names are written: kills before the first byte and the last, no room."""
    ways = (("kill", "os.rename"), ("kill", "open"), ("full", "open"))
    return tuple((fault, event, f"*{name}*", 1) for name in names for fault, event in ways)


def same_weights(first: Path, second: Path) -> str | None:
    """Compare last and best checkpoint: weights, optimizer and where the data stood. All others must be whole."""
    if damaged := [path.name for path in sorted(first.glob("checkpoint*.pt")) if not is_whole_checkpoint(path)]:
        return f"{', '.join(damaged)} damaged in the end"
    for name in ("checkpoint_last.pt", "checkpoint_best.pt"):
        if not (first / name).exists():
            return f"{name} is missing"
        one, other = (torch.load(path / name, weights_only=True) for path in (first, second))
        if not _equal(_lasting(one), _lasting(other)):
            return f"{name} differs from that of an undisturbed run"
    return None


def checkpoints_whole(first: Path, second: Path) -> str | None:
    """Say which checkpoint is damaged where no whole one is left beside it."""
    found = sorted(first.glob("checkpoint*.pt")) if first.exists() else []
    damaged = [path.name for path in found if not is_whole_checkpoint(path)]
    return f"none of {', '.join(damaged)} is whole" if damaged and len(damaged) == len(found) else None


def _same_folder(first: Path, second: Path) -> str | None:
    names, known = (
        {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()} for folder in (first, second)
    )
    if names != known:
        return f"{first.name} holds other files than an undisturbed run's: {', '.join(sorted(names ^ known))}"
    _, differing, missing = filecmp.cmpfiles(first, second, names, shallow=False)
    return f"{', '.join(differing + missing)} differ" if differing or missing else None


def _lasting(state: dict[str, Any]) -> object:
    return state["model"], state["last_optimizer_state"], state["extra_state"]["train_iterator"]


def _equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.equal(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other

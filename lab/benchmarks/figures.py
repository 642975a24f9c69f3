"""Figures beside their targets, and the CSV files of the results that hold them.

A page has one file, with a row for each figure of its tables. `runs.csv` beside it says of each table which command
made it, at which commit, on what machine, with which versions and seed.
"""

import argparse
import csv
import io
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pyramidions.files.atomic import write_file, written_together

# Programs of this folder are started by their paths, from where the checkout is not found.
sys.path.append(str(Path(__file__).parents[2]))
from lab.environment import commit, hardware, versions
from lab.tables import markdown

__all__ = ["markdown"]
COLUMNS = ("table", "row", "measure", "value", "low", "high", "target", "unit")
RUN = ("table", "command", "commit", "machine", "versions", "seed")


class Entry(NamedTuple):
    """A row of a table.

    Attributes:
        row: what is measured, such as a model.
        measure: what is measured of it.
        low, high: its interval, or the lowest and the highest of its turns; None where there is none.
        target: what it must at least be; None where nothing is asked.
    """

    row: str
    measure: str
    value: float | str
    low: float | None = None
    high: float | None = None
    target: float | None = None
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether it is at least its target."""
        return self.target is None or float(self.value) >= self.target

    def __str__(self) -> str:
        text = f"{self.row}: {self.value:.2f}{self.unit} (turns {self.low:.2f} to {self.high:.2f})"
        if self.target is None:
            return text
        return f"{text}, asked {self.target:g}{self.unit}{'' if self.met else ': MISSED'}"


def figure(name: str, value: float, turns: Sequence[float] = (), target: float | None = None, unit: str = "x") -> Entry:
    """Return a figure with the least and the most of its turns; without any, it is the same in every turn."""
    low, high = min(turns, default=value), max(turns, default=value)
    return Entry(name, "figure", value, low, high, target, unit)


def add_output(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options that say where results go; `name` is the table's, and the device's stands behind it."""
    parser.set_defaults(name=name)
    parser.add_argument("--out", type=Path, help="keep the figures in this file, as lab/benchmarks/results/sparse.csv")
    parser.add_argument("--table", help=f"the name of their table there (default: {name}-cpu, or {name}-cuda)")


def run_of(args: argparse.Namespace) -> dict[str, object]:
    """Return what made a table, by the names in `RUN` behind the first."""
    machine = hardware(getattr(args, "device", "cpu"))
    return {
        "command": shlex.join(["python", f"lab/benchmarks/{Path(sys.argv[0]).name}", *map(shown, sys.argv[1:])]),
        "commit": commit(),
        "machine": f"{machine['device']}, {machine['threads']} thread{'s' * (machine['threads'] > 1)}",
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
        "seed": getattr(args, "seed", ""),
    }


def save(args: argparse.Namespace, entries: Iterable[Entry]) -> None:
    """Put a table into the file that `--out` names, in place of an older one, and its run into `runs.csv`."""
    if args.out is None:
        return
    table = args.table or f"{args.name}-{getattr(args, 'device', 'cpu')}"
    run = (table, *run_of(args).values())
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with written_together():
        _replace(args.out, COLUMNS, table, [(table, *map(_cell, entry)) for entry in entries])
        _replace(args.out.with_name("runs.csv"), RUN, table, [run])


def read(path: Path, table: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of a table, by row and measure."""
    with path.open(newline="", encoding="utf-8") as file:
        return {(each["row"], each["measure"]): each for each in csv.DictReader(file) if each["table"] == table}


def _replace(path: Path, columns: Sequence[str], table: str, rows: Sequence[Sequence[object]]) -> None:
    """Write a file of several tables anew, one of them changed; a new one comes last."""
    old: list[list[str]] = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            old = list(csv.reader(file))[1:]
    place = next((place for place, each in enumerate(old) if each[0] == table), len(old))
    others = [[each for each in part if each[0] != table] for part in (old[:place], old[place:])]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *others[0], *rows, *others[1]])
    write_file(path, text.getvalue().encode())


def _cell(value: object) -> object:
    """Return a number with the six digits that suffice here."""
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value


def shown(argument: str) -> str:
    """Return an argument without the folders that a file lies in on this machine."""
    return "/".join(Path(argument).parts[-2:]) if Path(argument).is_absolute() else argument

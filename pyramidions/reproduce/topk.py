"""What benchmarks/topk.py wrote: figures 5 and 6."""

import csv
import math
from pathlib import Path
from typing import NamedTuple

from pyramidions.errors import UserError
from pyramidions.reproduce.fields import Fields

_COLUMNS = ("operator", "n", "k", "seconds", "nccs")


class Point(NamedTuple):
    """One operator at one size.

    Attributes:
        operator: its name.
        n: vectors to choose from.
        k: vectors to select.
        seconds: of forward and backward on a batch; None where it was not run for lack of memory.
        nccs: normalised Chamfer cosine similarity to hard top-k, at most 1; None likewise.
    """

    operator: str
    n: int
    k: int
    seconds: float | None
    nccs: float | None


class TopK(NamedTuple):
    """The benchmark's points, and where they come from."""

    points: list[Point]
    machine: str
    commit: str
    summary: str


def read_topk(out: Path) -> TopK | None:
    """Read OUT/topk/topk.csv and topk.json; None where there is no such CSV file.

    Raises:
        UserError: a damaged or missing file.
    """
    path = out / "topk" / "topk.csv"
    if not path.exists():
        return None
    about_path = path.with_suffix(".json")
    if not about_path.exists():
        raise UserError(f"{about_path} must be there beside topk.csv, to say where it comes from, but is not.")
    about = Fields.read(about_path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (ValueError, csv.Error):
        rows = []
    if not rows or any(not isinstance(row.get(name), str) for row in rows for name in _COLUMNS):
        raise UserError(f"{path} must be as written by benchmarks/topk.py, with columns {', '.join(_COLUMNS)}.")
    points = [_point(path, number, row) for number, row in enumerate(rows, 2)]
    return TopK(points, about.text("machine"), about.text("commit"), about.text("summary"))


def _point(path: Path, number: int, row: dict[str, str]) -> Point:
    try:
        n, k = int(row["n"]), int(row["k"])
        seconds, nccs = (float(row[name]) if row[name] else None for name in ("seconds", "nccs"))
    except ValueError:
        raise UserError(f"{path}, line {number}: n, k, seconds and nccs must be numbers.") from None
    sane = 0 < k < n and (seconds is None or 0 < seconds < math.inf) and (nccs is None or -1.001 <= nccs <= 1.001)
    if not sane or not row["operator"].isprintable():
        raise UserError(f"{path}, line {number}: must have k below n, seconds above 0 and nCCS from -1 to 1.")
    return Point(row["operator"], n, k, seconds, nccs)

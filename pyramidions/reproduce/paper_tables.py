"""The page's tables: the paper's rows beside ours."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from pyramidions.markdown import plain
from pyramidions.reproduce.catalogue import PaperRow
from pyramidions.reproduce.comparison import Line
from pyramidions.reproduce.results import Interval
from pyramidions.reproduce.scale import SCALES

_Value = TypeVar("_Value")
_Column = tuple[str, Callable[[Line], str]]  # its head, and what it says of a row
NOT_RUN = "not run"
_NOTHING = "–"  # the paper does not say
_TWO_DECIMALS = ("table3",)  # of ROUGE in the paper
_MARKS = {1: " ▲", -1: " ▼", 0: ""}
#: What the paper states of figure 4, by the row's name.
CLAIMED = {"pyramidion-16": 3.8}


def quality_table(lines: Sequence[Line]) -> list[str]:
    """Return a table of ROUGE and, where the paper times the rows, of speed-ups."""
    columns: list[_Column] = []
    for metric, name in (("r1", "R-1"), ("r2", "R-2")):
        if any(not line.score_obstacle for line in lines):
            columns.append((f"{name} paper", partial(_paper_score, metric=metric)))
        columns.append((f"{name} ours", partial(_our_score, metric=metric)))
    if any("train_s" in line.row.paper for line in lines):
        columns += [*_speed_ups(lines, "train_s", "train × "), *_speed_ups(lines, "infer512_s", "decode × ")]
    return _table(lines, columns)


def seconds_table(lines: Sequence[Line], phase: str) -> list[str]:
    """Return one part of table 10: seconds a batch and speed-ups; ``phase`` is one of `PHASES`."""
    columns: list[_Column] = []
    if any(not line.time_obstacle for line in lines):
        columns.append(("paper, s", partial(_paper_seconds, phase=phase)))
    columns.append(("ours, s", partial(_our_seconds, phase=phase)))
    return _table(lines, [*columns, *_speed_ups(lines, phase, "× ")])


def _speed_ups(lines: Sequence[Line], phase: str, head: str) -> list[_Column]:
    ours: _Column = (f"{head}ours", partial(_our_speed_up, phase=phase))
    if all(line.time_obstacle for line in lines):
        return [ours]
    return [(f"{head}paper", partial(_paper_speed_up, phase=phase)), ours]


def layers_table(lines: Sequence[Line]) -> list[str]:
    """Return the table of figure 4."""
    columns: list[_Column] = [("ours, s", partial(_our_seconds, phase="train_s"))]
    if any(not line.time_obstacle for line in lines):
        columns.append(("× paper", _claimed))
    return _table(lines, [*columns, ("× ours", partial(_our_speed_up, phase="train_s"))])


def row_name(line: Line) -> str:
    """The row as the page calls it: one of tiny models says so."""
    tiny = line.result is not None and line.result.scale == "tiny"
    return f"{cell(line.row.row)}{' (tiny)' if tiny else ''}"


def lengths(row: PaperRow, divisor: int = 1) -> str:
    """What the encoder's layers consume and the decoder reads: "2×8192 > 2048 → 512", each over ``divisor``."""
    stages = []
    for stage in row.encoder_lengths.split(">"):
        runs = [(int(length) // divisor, len(list(same))) for length, same in groupby(stage.split(","))]
        stages.append(", ".join(f"{count}×{length}" if count > 1 else str(length) for length, count in runs))
    joined = " > ".join(stages)
    return f"{cell(joined)} → {row.decoder_length // divisor}"


def cell(text: str) -> str:
    """Return text that Markdown shows as it is in a table."""
    return plain(text).replace("|", "\\|")


def three_digits(value: float) -> str:
    """Return a positive number with three significant digits: 0.0123, 1.23, 123."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:.{_decimals(rounded)}f}"


def _decimals(value: float) -> int:
    return max(0, 2 - math.floor(math.log10(value))) if value > 0 else 2


def _names(line: Line) -> list[str]:
    row = line.row
    divisor = SCALES[line.result.scale].lengths if line.result else 1
    blocks = "no blocks" if row.block_size is None else f"blocks of {row.block_size // divisor}"
    architecture = f"{row.architecture}, {blocks}" if row.table == "table8" else row.architecture
    return [row_name(line), cell(architecture), lengths(row, divisor)]


def _score(value: Interval | float, table: str) -> str:
    return _interval(value, f"{{:.{2 if table in _TWO_DECIMALS else 1}f}}".format)


def _interval(value: Interval | float, show: Callable[[float], str]) -> str:
    if isinstance(value, Interval):
        return f"{show(value.value)} [{show(value.low)}, {show(value.high)}]"
    return show(value)


def _stated(value: _Value | None, show: Callable[[_Value], str], obstacle: str) -> str:
    """Return a figure of the paper, or why it is not there."""
    return obstacle or (_NOTHING if value is None else show(value))


def _paper_score(line: Line, metric: str) -> str:
    return _stated(line.paper_score(metric), partial(_score, table=line.row.table), line.score_obstacle)


def _our_score(line: Line, metric: str) -> str:
    ours = line.our_score(metric)
    return NOT_RUN if ours is None else f"{_score(ours, line.row.table)}{_MARKS[line.difference(metric)]}"


def _paper_seconds(line: Line, phase: str) -> str:
    return _stated(line.row.paper.get(phase), "{:.2f}".format, line.time_obstacle)


def _claimed(line: Line) -> str:
    return _stated(CLAIMED.get(line.row.row), "up to {}".format, line.time_obstacle)


def _paper_speed_up(line: Line, phase: str) -> str:
    return _stated(line.paper_speed_ups.get(phase), three_digits, line.time_obstacle)


def _our_speed_up(line: Line, phase: str) -> str:
    if not line.is_comparable:
        return "other reference"
    ours = line.our_speed_up(phase)
    return NOT_RUN if ours is None else _interval(ours, three_digits)


def _our_seconds(line: Line, phase: str) -> str:
    timing = line.timing(phase)
    if timing is None:
        return NOT_RUN
    return f"{three_digits(timing.mean)} ± {timing.standard_deviation:.{_decimals(timing.mean)}f}"


def _table(lines: Sequence[Line], columns: Sequence[_Column]) -> list[str]:
    """Return a Markdown table with columns of numbers behind the names of rows."""
    left = ["row", "architecture", "encoder → decoder"]
    body = [[*_names(line), *(number(line) for _, number in columns)] for line in lines]
    heads = [head for head, _ in columns]
    rows = [[*left, *heads], [*("---" for _ in left), *("---:" for _ in heads)], *body]
    return [f"| {' | '.join(row)} |" for row in rows]

"""The page's tables: the paper's rows beside ours."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from pyramidions.markdown import plain
from pyramidions.reproduce.catalogue import PaperRow
from pyramidions.reproduce.comparison import OBSTACLES, Line
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
    """Return a table of ROUGE and, if the paper times the rows, of speed-ups."""
    columns: list[_Column] = [
        (f"{name} {whose}", partial(show, metric=metric))
        for metric, name in (("r1", "R-1"), ("r2", "R-2"))
        for whose, show in (("paper", _paper_score), ("ours", _our_score))
    ]
    if any("train_s" in line.row.paper for line in lines):
        columns += [*_speed_ups("train_s", "train × "), *_speed_ups("infer512_s", "decode × ")]
    return _table(lines, columns)


def seconds_table(lines: Sequence[Line], phase: str) -> list[str]:
    """Return one part of table 10: seconds a batch and speed-ups; ``phase`` is one of `PHASES`."""
    seconds = [("paper, s", partial(_paper_seconds, phase=phase)), ("ours, s", partial(_our_seconds, phase=phase))]
    return _table(lines, [*seconds, *_speed_ups(phase, "× ")])


def layers_table(lines: Sequence[Line]) -> list[str]:
    """Return the table of figure 4."""
    ours = partial(_our_seconds, phase="train_s"), partial(_our_speed_up, phase="train_s")
    return _table(lines, [("ours, s", ours[0]), ("× paper", _claimed), ("× ours", ours[1])])


def _speed_ups(phase: str, head: str) -> list[_Column]:
    return [
        (f"{head}paper", partial(_paper_speed_up, phase=phase)),
        (f"{head}ours", partial(_our_speed_up, phase=phase)),
    ]


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
    """Return a Markdown table with columns of numbers behind the names of rows.

    A column of the paper's is left out if none of its figures can be compared with ours.
    """
    found = [(head, [show(line) for line in lines]) for head, show in columns]
    kept = [(head, cells) for head, cells in found if not OBSTACLES.issuperset(cells)]
    heads = ["row", "architecture", "encoder → decoder", *(head for head, _ in kept)]
    rules = ["---:" if number > 2 else "---" for number in range(len(heads))]
    body = [[*_names(line), *(cells[n] for _, cells in kept)] for n, line in enumerate(lines)]
    return [f"| {' | '.join(row)} |" for row in (heads, rules, *body)]

"""The page's tables: the paper's rows beside ours."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from pyramidions.reproduce.catalogue import PaperRow
from pyramidions.reproduce.comparison import Line
from pyramidions.reproduce.fields import Interval

NOT_RUN = "not run"
_NOTHING = "–"  # the paper does not say
_TWO_DECIMALS = ("table3",)  # of ROUGE in the paper
_MARKS = {1: " ▲", -1: " ▼", 0: ""}
#: What the paper states of figure 4, by the row's name.
CLAIMED = {"pyramidion-16": 3.8}


def quality_table(lines: Sequence[Line]) -> list[str]:
    """Return a table of ROUGE and, where the paper times the rows, of speed-ups."""
    heads = ["R-1 paper", "R-1 ours", "R-2 paper", "R-2 ours"]
    timed = any("train_s" in line.row.paper for line in lines)
    if timed:
        heads += ["train × paper", "train × ours", "decode × paper", "decode × ours"]
    body = []
    for line in lines:
        cells = [score(line, metric) for metric in ("r1", "r2") for score in (_paper_score, _our_score)]
        if timed:
            for phase in ("train_s", "infer512_s"):
                cells += [_paper_speed_up(line, phase), _our_speed_up(line, phase)]
        body.append([*_names(line), *cells])
    return _table(["row", "architecture", "encoder → decoder"], heads, body)


def seconds_table(lines: Sequence[Line], phase: str) -> list[str]:
    """Return one part of table 10: seconds a batch and speed-ups; ``phase`` is one of `PHASES`."""
    heads = ["paper, s", "ours, s", "× paper", "× ours"]
    body = [
        [
            *_names(line),
            f"{line.row.paper[phase]:.2f}" if phase in line.row.paper else _NOTHING,
            _our_seconds(line, phase),
            _paper_speed_up(line, phase),
            _our_speed_up(line, phase),
        ]
        for line in lines
    ]
    return _table(["row", "architecture", "encoder → decoder"], heads, body)


def layers_table(lines: Sequence[Line]) -> list[str]:
    """Return the table of figure 4."""
    body = []
    for line in lines:
        claimed = f"up to {CLAIMED[line.row.row]}" if line.row.row in CLAIMED else _NOTHING
        ours = [_our_seconds(line, "train_s"), _our_speed_up(line, "train_s")]
        name, architecture, lengths = _names(line)
        body.append([name, architecture, lengths, ours[0], claimed, ours[1]])
    return _table(["row", "architecture", "encoder → decoder"], ["ours, s", "× paper", "× ours"], body)


def row_name(line: Line) -> str:
    """The row as the page calls it: one of tiny models says so."""
    tiny = line.result is not None and line.result.scale == "tiny"
    return f"{cell(line.row.row)}{' (tiny)' if tiny else ''}"


def lengths(row: PaperRow) -> str:
    """What the encoder's layers consume and the decoder reads: "2×8192 > 2048 → 512"."""
    stages = []
    for stage in row.encoder_lengths.split(">"):
        runs = [(length, len(list(same))) for length, same in groupby(stage.split(","))]
        stages.append(", ".join(f"{count}×{length}" if count > 1 else length for length, count in runs))
    joined = " > ".join(stages)
    return f"{cell(joined)} → {row.decoder_length}"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*\[\]<&~]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def cell(text: str) -> str:
    """Return text that Markdown shows as it is in a table."""
    return escaped(text).replace("|", "\\|")


def three_digits(value: float) -> str:
    """Return a positive number with three significant digits: 0.0123, 1.23, 123."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:.{_decimals(rounded)}f}"


def _decimals(value: float) -> int:
    return max(0, 2 - math.floor(math.log10(value))) if value > 0 else 2


def _names(line: Line) -> list[str]:
    row = line.row
    blocks = "no blocks" if row.block_size is None else f"blocks of {row.block_size}"
    architecture = f"{row.architecture}, {blocks}" if row.table == "table8" else row.architecture
    return [row_name(line), cell(architecture), lengths(row)]


def _score(value: Interval | float, table: str) -> str:
    decimals = 2 if table in _TWO_DECIMALS else 1
    return _interval(value, lambda x: f"{x:.{decimals}f}")


def _interval(value: Interval | float, show: Callable[[float], str]) -> str:
    if isinstance(value, Interval):
        return f"{show(value.value)} [{show(value.low)}, {show(value.high)}]"
    return show(value)


def _paper_score(line: Line, metric: str) -> str:
    paper = line.paper_score(metric)
    return _NOTHING if paper is None else _score(paper, line.row.table)


def _our_score(line: Line, metric: str) -> str:
    ours = line.our_score(metric)
    return NOT_RUN if ours is None else f"{_score(ours, line.row.table)}{_MARKS[line.difference(metric)]}"


def _paper_speed_up(line: Line, phase: str) -> str:
    return three_digits(line.paper_speed_ups[phase]) if phase in line.paper_speed_ups else _NOTHING


def _our_speed_up(line: Line, phase: str) -> str:
    if not line.is_comparable:
        return "other reference"
    ours = line.our_speed_up(phase)
    return NOT_RUN if ours is None else _interval(ours, three_digits)


def _our_seconds(line: Line, phase: str) -> str:
    timing = line.timing(phase)
    if timing is None:
        return NOT_RUN
    return f"{three_digits(timing.mean)} ± {timing.deviation:.{_decimals(timing.mean)}f}"


def _table(left: list[str], right: list[str], body: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table whose last columns are numbers."""
    rows = [[*left, *right], [*("---" for _ in left), *("---:" for _ in right)], *body]
    return [f"| {' | '.join(row)} |" for row in rows]

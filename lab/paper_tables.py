"""The page's tables: the papers' rows beside ours."""

import math
from collections.abc import Callable, Sequence
from itertools import groupby

from lab.catalogue import SYSTEM_TABLES, PaperRow
from lab.comparison import OBSTACLES, Line
from lab.results import Interval
from lab.scale import SCALES
from pyramidions.markdown import plain
from pyramidions.scoring import FIGURES

_Column = tuple[str, Callable[[Line], str]]  # its head, and what it says of a row
NOT_RUN = "not run"
_NOTHING = "–"  # the paper does not say
_TWO_DECIMALS = ("table3", *SYSTEM_TABLES)  # of ROUGE in the paper
_MARKS = {1: " ▲", -1: " ▼", 0: ""}
#: What the paper states of figure 4, by the row's name.
CLAIMED = {"pyramidion-16": 3.8}


def quality_table(lines: Sequence[Line]) -> list[str]:
    """Return a table of ROUGE and, if the paper times the rows, of speed-ups."""
    columns = [*_scores("r1", "R-1"), *_scores("r2", "R-2")]
    if any("train_s" in line.row.paper for line in lines):
        columns += [*_speed_ups("train_s", "train × "), *_speed_ups("infer512_s", "decode × ")]
    return _table(lines, columns)


def systems_table(lines: Sequence[Line]) -> list[str]:
    """Return a table of ROUGE with what each system starts from: never is one read without the other."""

    def published(line: Line) -> str:
        return line.score_obstacle or cell(line.row.pretrained) or _NOTHING

    def ours(line: Line) -> str:
        return (cell(line.row.starts_from) or "nothing") if line.row.config else _NOTHING

    scores = [column for metric in ("r1", "r2", "rl") for column in _scores(metric, f"R-{metric[1:].upper()}")]
    return _table(lines, [("paper starts from", published), ("ours starts from", ours), *scores])


def pretraining_table(lines: Sequence[Line]) -> list[str]:
    """Return a table of updates and log-perplexity, in nats a token."""

    def paper(name: str, form: str) -> Callable[[Line], str]:
        return lambda line: line.score_obstacle or _shown(line.row.paper.get(name), _NOTHING, form.format)

    def updates(line: Line) -> str:
        return f"{line.result.training.updates:,}" if line.result and line.result.training else _NOTHING

    def ours(line: Line) -> str:
        best = line.result.training.best if line.result and line.result.training else None
        # fairseq logs bits.
        return _NOTHING if best is None else f"{best.value * math.log(2):.2f}"

    published = [
        ("updates paper", paper("steps", "{:,.0f}")),
        ("log-perplexity paper", paper("log_perplexity", "{:.2f}")),
    ]
    return _table(lines, [published[0], ("updates ours", updates), published[1], ("log-perplexity ours", ours)])


def seconds_table(lines: Sequence[Line], phase: str) -> list[str]:
    """Return one part of table 10: seconds a batch and speed-ups; ``phase`` is one of `PHASES`."""
    return _table(lines, [*_seconds(phase), *_speed_ups(phase, "× ")])


def layers_table(lines: Sequence[Line]) -> list[str]:
    """Return the table of figure 4."""

    def claimed(line: Line) -> str:
        return line.time_obstacle or _shown(CLAIMED.get(line.row.row), _NOTHING, "up to {}".format)

    _, seconds = _seconds("train_s")
    _, speed_ups = _speed_ups("train_s", "× ")
    return _table(lines, [seconds, ("× paper", claimed), speed_ups])


def _scores(metric: str, head: str) -> list[_Column]:
    def paper(line: Line) -> str:
        return line.score_obstacle or _shown(line.paper_score(metric), _NOTHING, form(line))

    def ours(line: Line) -> str:
        absent = NOT_RUN if line.row.config else _NOTHING
        return f"{_shown(line.our_score(metric), absent, form(line))}{_MARKS[line.difference(metric)]}"

    def form(line: Line) -> Callable[[float], str]:
        return ("{:.2f}" if line.row.table in _TWO_DECIMALS else "{:.1f}").format

    return [(f"{head} paper", paper), (f"{head} ours", ours)]


def _speed_ups(phase: str, head: str) -> list[_Column]:
    def paper(line: Line) -> str:
        return line.time_obstacle or _shown(line.paper_speed_ups.get(phase), _NOTHING, three_digits)

    def ours(line: Line) -> str:
        return _shown(line.our_speed_up(phase), NOT_RUN if line.is_comparable else "other reference", three_digits)

    return [(f"{head}paper", paper), (f"{head}ours", ours)]


def _seconds(phase: str) -> list[_Column]:
    def paper(line: Line) -> str:
        return line.time_obstacle or _shown(line.row.paper.get(phase), _NOTHING, "{:.2f}".format)

    def ours(line: Line) -> str:
        timing = line.timing(phase)
        if timing is None:
            return NOT_RUN
        return f"{three_digits(timing.mean)} ± {timing.standard_deviation:.{_decimals(timing.mean)}f}"

    return [("paper, s", paper), ("ours, s", ours)]


def further_table(lines: Sequence[Line]) -> list[str]:
    """Return a table of the figures beside ROUGE, which the paper has none of; every line has some."""
    found = [line.result.scores.further for line in lines if line.result and line.result.scores]
    names = dict.fromkeys(name for further in found for name in further)

    def column(name: str) -> _Column:
        def ours(line: Line) -> str:
            scores = line.result.scores if line.result else None
            return _shown(scores.further.get(name) if scores else None, NOT_RUN, "{:.2f}".format)

        return FIGURES[name].label if name in FIGURES else cell(name), ours

    return _table(lines, [column(name) for name in names])


def _shown(value: Interval | float | None, absent: str, show: Callable[[float], str]) -> str:
    if isinstance(value, Interval):
        return f"{show(value.value)} [{show(value.low)}, {show(value.high)}]"
    return absent if value is None else show(value)


def row_name(line: Line) -> str:
    """The row as the page calls it: one of smaller models says so."""
    smaller = f" ({line.result.scale})" if line.result is not None and line.result.scale != "paper" else ""
    return f"{cell(line.row.row)}{smaller}"


def lengths(row: PaperRow, divisor: int = 1) -> str:
    """What the encoder's layers consume and the decoder reads: "2×8192 > 2048 → 512", each over ``divisor``."""
    if row.decoder_length is None:
        return _NOTHING
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

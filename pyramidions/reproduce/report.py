"""Writes the report: a page, a CSV file and plots."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyramidions.errors import UserError
from pyramidions.files.atomic import atomic_file
from pyramidions.reproduce.catalogue import FIGURES, read_catalogue
from pyramidions.reproduce.comparison import Line, compare, shown
from pyramidions.reproduce.page import page, summary
from pyramidions.reproduce.paper_tables import CLAIMED
from pyramidions.reproduce.plots import draw_speed_ups
from pyramidions.reproduce.results import PHASES, Interval, read_results, read_topk
from pyramidions.scoring import LABELS


class Report(NamedTuple):
    """What was written.

    Attributes:
        page: the Markdown file.
        table: the CSV file, one line a row of the paper.
        plots: PNG files.
        summary: how many rows were run, in one sentence.
    """

    page: Path
    table: Path
    plots: list[Path]
    summary: str


def write_report(out: Path, configs: Path, to: Path | None = None) -> Report:
    """Write the report of all results in a folder; beside the page go a CSV file and plots of its name.

    Args:
        out: the folder that `pyramidions reproduce` fills.
        configs: the folder that holds paper.csv.
        to: the page, a .md file; report.md in ``out`` where it is None.

    Raises:
        UserError: a folder that is not there, or a damaged or foreign result file; nothing is written then.
    """
    if not out.is_dir():
        raise UserError(f"OUT must be a folder of results, but is {out}.")
    to = out / "report.md" if to is None else to
    if to.suffix != ".md" or to.is_dir() or not to.absolute().parent.is_dir():
        raise UserError(f"--to must be a .md file in a folder that exists, but is {to}.")
    catalogue = read_catalogue(configs)
    lines = compare(catalogue, read_results(out, catalogue))
    topk = read_topk(out)
    images = {
        "figure4": _figure4(lines),
        "topk": (out / "topk" / "topk.png").read_bytes() if topk else None,
    }
    drawn = {}
    for figure, image in images.items():
        path = to.with_name(f"{to.stem}-{figure}.png")
        if image is None:
            # One of an earlier report would show other results than the page.
            path.unlink(missing_ok=True)
        else:
            _write(path, image)
            drawn[figure] = path.name
    _write(to.with_suffix(".csv"), table(lines).encode())
    _write(to, page(lines, topk, drawn).encode())
    plots = [to.with_name(name) for name in drawn.values()]
    return Report(to, to.with_suffix(".csv"), plots, summary(lines, topk))


def _write(path: Path, content: bytes) -> None:
    with atomic_file(path) as file:
        file.write(content)


def _figure4(lines: Sequence[Line]) -> bytes | None:
    kinds: dict[tuple[str, str, str], list[tuple[int, Interval]]] = {}
    for line in shown(lines, "figure4"):
        speed_up = line.our_speed_up("train_s")
        # Vanilla models are their own reference.
        if line.result is not None and speed_up is not None and line.row.config != line.row.reference:
            # Only what was measured alike is joined by a line.
            kind = (line.row.row.rpartition("-")[0], line.result.scale, line.result.hardware.device)
            kinds.setdefault(kind, []).append((line.row.encoder_layers, speed_up))
    if not kinds:
        return None
    alike = len({kind[1:] for kind in kinds}) == 1
    series = {
        name if alike else f"{name} ({scale} scale, {device})": sorted(points, key=lambda point: point[0])
        for (name, scale, device), points in kinds.items()
    }
    claimed = {line.row.encoder_layers: CLAIMED[line.row.row] for line in lines if line.row.row in CLAIMED}
    at_paper_scale = any(scale == "paper" for _, scale, _ in kinds)
    return draw_speed_ups(series, next(iter(claimed.items()), None) if at_paper_scale else None)


def table(lines: Sequence[Line]) -> str:
    """Return all rows as CSV: "paper_" before what the paper says, seconds end in "_s", speed-ups in "_speed_up".

    The column "status" says "run", "not run" or what is missing; a number that is not there is empty.
    """
    rows = [_csv_row(line) for line in lines]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _csv_row(line: Line) -> dict[str, object]:
    row, result = line.row, line.result
    training, times = (result.training, result.times) if result else (None, None)
    cells: dict[str, object] = {
        **{name: getattr(row, name) for name in ("table", "row", "config", "data", "reference")},
        "status": line.status,
        "scale": result.scale if result else "",
        "corpus": result.corpus.name if result and result.corpus else "",
        **{f"paper_{name}": row.paper.get(name, "") for name in FIGURES},
    }
    for metric in LABELS:
        cells |= _interval(metric, getattr(result and result.scores, metric, None))
    for phase in PHASES:
        timing = line.timing(phase)
        cells |= {phase: _number(timing, "mean"), f"{phase}_deviation": _number(timing, "standard_deviation")}
    for phase in PHASES:
        name = f"{phase.removesuffix('_s')}_speed_up"
        cells[f"paper_{name}"] = _rounded(line.paper_speed_ups.get(phase))
        cells |= _interval(name, line.our_speed_up(phase))
    cells["training_s"] = _number(training, "seconds")
    cells |= {name: getattr(training, name, "") for name in ("updates", "epochs")}
    cells["generation_s"] = _number(result and result.generation, "seconds")
    cells["decode_tokens"] = " ".join(map(str, times.decoded)) if times else ""
    cells |= {name: getattr(result, name, "") for name in ("commit", "data_hash", "seed")}
    hardware = result and result.hardware
    return cells | {name: getattr(hardware, name, "") for name in ("device", "threads", "gpus", "nodes")}


def _interval(name: str, interval: Interval | None) -> dict[str, str]:
    fields = {name: "value", f"{name}_low": "low", f"{name}_high": "high"}
    return {column: _number(interval, field) for column, field in fields.items()}


def _number(part: object, field: str) -> str:
    return _rounded(getattr(part, field, None))


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"

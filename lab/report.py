"""Writes the report: a page, a CSV file and plots."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.catalogue import FIGURES, read_catalogue
from lab.comparison import Line, compare, shown
from lab.page import page, summary
from lab.paper_tables import CLAIMED
from lab.results import PHASES, ROUGE, Interval, read_results, read_topk
from lab.seeds import SeededRow, read_seeds
from lab.seeds_page import by_seed
from lab.seeds_page import summary as summary_of_seeds
from lab.seeds_plot import draw_losses
from pyramidions.curves.picture import STYLES, image, literal, new_figure
from pyramidions.errors import UserError
from pyramidions.files.atomic import write_file


class Report(NamedTuple):
    """What was written.

    Attributes:
        page: the Markdown file.
        files: the page, the CSV file with one line a row of the paper, that with one line a seed if there are any, and
            PNG files.
        summary: how many rows were run, in one sentence.
    """

    page: Path
    files: list[Path]
    summary: str


def write_report(out: Path, configs: Path, to: Path | None = None) -> Report:
    """Write the report of all results in a folder; beside the page go a CSV file and plots of its name.

    Args:
        out: the folder that `python -m lab reproduce` fills.
        configs: the folder that holds paper.csv.
        to: the page, a .md file; report.md in ``out`` where it is None.

    Raises:
        UserError: a folder that is not there, a damaged or foreign result file, or a new page among files of another
            report; nothing is written then.
    """
    if not out.is_dir():
        raise UserError(f"OUT must be a folder of results, but is {out}.")
    asked, to = to, out / "report.md" if to is None else to
    if to.suffix != ".md" or to.is_dir() or not to.absolute().parent.is_dir():
        raise UserError(f"--to must be a .md file in a folder that exists, but is {to}.")
    catalogue = read_catalogue(configs)
    lines = compare(catalogue, read_results(out, catalogue))
    seeded = list(read_seeds(out, catalogue).values())
    _check_scales(out, lines, seeded)
    topk = read_topk(out)
    images = {
        "figure4": _figure4(lines),
        "topk": (out / "topk" / "topk.png").read_bytes() if topk else None,
        "losses": draw_losses(seeded),
    }
    beside: dict[Path, bytes | None] = {
        to.with_suffix(".csv"): table(lines).encode(),
        to.with_name(f"{to.stem}-seeds.csv"): by_seed(seeded).encode() if seeded else None,
        **{to.with_name(f"{to.stem}-{figure}.png"): content for figure, content in images.items()},
    }
    if asked is not None and not to.exists():
        _check_beside(beside)
    for path, content in beside.items():
        if content is None:
            # One of an earlier report would show other results than the page.
            path.unlink(missing_ok=True)
        else:
            write_file(path, content)
    drawn = {figure: f"{to.stem}-{figure}.png" for figure, content in images.items() if content is not None}
    write_file(to, page(lines, topk, drawn, seeded).encode())
    files = [to, *(path for path, content in beside.items() if content is not None)]
    told = summary_of_seeds(seeded) if seeded and not any(line.result for line in lines) else summary(lines, topk)
    return Report(to, files, told)


def _check_scales(out: Path, lines: Sequence[Line], seeded: Sequence[SeededRow]) -> None:
    """Refuse small results beside others; the page tells tiny ones from the paper's itself."""
    scales = {line.result.scale for line in lines if line.result} | {row.scale for row in seeded}
    if len(scales) > 1 and ("small" in scales or seeded):
        raise UserError(f"OUT must hold results of one scale, but {out} has some of {' and '.join(sorted(scales))}.")


def _check_beside(files: Mapping[Path, bytes | None]) -> None:
    """Refuse to write a new page beside files of another report; those of this one are of an interrupted run."""
    for path, content in files.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            raise UserError(f"--to must be a page beside which no other report's files lie, but there is {path}.")


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


def draw_speed_ups(series: Mapping[str, Sequence[tuple[int, Interval]]], paper: tuple[int, float] | None) -> bytes:
    """Draw figure 4: speed-up of a training step over the vanilla model with as many layers.

    Args:
        series: by label, numbers of layers with speed-ups.
        paper: number of layers and speed-up that the paper states; None to leave it out.

    Returns:
        A PNG image.
    """
    figure = new_figure(7.0, 5.0)
    axes = figure.subplots()
    axes.axhline(1, color="#666666", linewidth=1.2, label="vanilla, as many layers")
    for number, (label, points) in enumerate(series.items()):
        colour, marker = STYLES[number % len(STYLES)]
        layers, speed_ups = zip(*points, strict=True)
        # Rounding may leave a value outside of its interval by the last digit.
        around = [(max(0.0, s.value - s.low), max(0.0, s.high - s.value)) for s in speed_ups]
        axes.errorbar(
            *(layers, [s.value for s in speed_ups]),
            yerr=list(zip(*around, strict=True)),
            color=colour,
            marker=marker,
            capsize=4,
            label=literal(label),
        )
    if paper is not None:
        star: dict[str, Any] = {"marker": "*", "color": "#000000", "markersize": 13, "linestyle": "none"}
        axes.plot(*paper, label="the paper's pyramidion (up to)", **star)
    numbers = {n for points in series.values() for n, _ in points} | ({paper[0]} if paper else set())
    axes.set_xticks(sorted(numbers))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("layers of the encoder, and as many of the decoder")
    axes.set_ylabel("speed-up of a training step (×)")
    axes.grid(axis="y", color="#DDDDDD")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return image(figure)


def table(lines: Sequence[Line]) -> str:
    """Return all rows as CSV: "paper_" before what the paper says, seconds end in "_s", speed-ups in "_speed_up".

    The column "status" says "run", "not run" or what is missing; a number that is not there is empty.
    """
    scored = [line.result.scores for line in lines if line.result and line.result.scores]
    figures = dict.fromkeys(name for scores in scored for name in scores.figures)
    rows = [_csv_row(line, [*(figures or ROUGE)]) for line in lines]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _csv_row(line: Line, figures: Sequence[str]) -> dict[str, str]:
    result = line.result
    cells = _cells(
        line.row, "table", "row", "config", "data", "reference", "starts_from", paper_starts_from="pretrained"
    )
    cells["status"] = line.status
    cells |= _cells(result, "scale") | _cells(result and result.corpus, corpus="name")
    cells |= {f"paper_{name}": _text(line.row.paper.get(name)) for name in FIGURES}
    for name in figures:
        cells |= _interval(name, result.scores.figures.get(name) if result and result.scores else None)
    for phase in PHASES:
        cells |= _cells(line.timing(phase), **{phase: "mean", f"{phase}_deviation": "standard_deviation"})
    for phase in PHASES:
        name = f"{phase.removesuffix('_s')}_speed_up"
        cells[f"paper_{name}"] = _text(line.paper_speed_ups.get(phase))
        cells |= _interval(name, line.our_speed_up(phase))
    cells |= _cells(result and result.training, "updates", "epochs", training_s="seconds")
    cells |= _cells(result and result.generation, generation_s="seconds")
    cells["decode_tokens"] = " ".join(map(str, result.times.decoded)) if result and result.times else ""
    cells |= _cells(result, "commit", "data_hash", "seed")
    return cells | _cells(result and result.hardware, "device", "threads", "gpus", "nodes")


def _interval(name: str, interval: Interval | None) -> dict[str, str]:
    return _cells(interval, **{name: "value", f"{name}_low": "low", f"{name}_high": "high"})


def _cells(part: object, *names: str, **fields: str) -> dict[str, str]:
    """Return fields of a part by column, those of ``names`` by their own; empty if the part is None."""
    fields = {**dict(zip(names, names, strict=True)), **fields}
    return {column: _text(getattr(part, field, None)) for column, field in fields.items()}


def _text(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

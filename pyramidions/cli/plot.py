"""`pyramidions plot`."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyramidions.cli.columns import columns
from pyramidions.cli.outputs import PATH, check_output
from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.curves.training_log import TrainingLog


@click.command(short_help="Draw loss, ROUGE and sharpness of training runs.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option("-o", "--out", default="training.png", type=PATH, help="The picture, a .png or .svg file.")
@click.option("--csv", "table", type=PATH, help="Write all points to this file.")
def plot(runs: tuple[Path, ...], out: Path, table: Path | None) -> None:
    """Draw how trainings went, from their logs: loss, ROUGE and selection sharpness over the updates.

    RUN is what fairseq-train or fairseq-hydra-train printed, in any --log-format, or a folder with such a log, as
    `python -m lab reproduce` makes one a row. A training curve is thin and has means over intervals or over epochs,
    whichever the log has more of. Validation has markers; of several subsets the first is drawn, and --csv has all.
    What a killed run did after the checkpoint from which it was resumed is left out.

    \b
    Example:
      pyramidions plot train.log
      pyramidions plot reproduced/paper/arxiv/table3/* -o table3.svg --csv table3.csv
    """
    import matplotlib  # noqa: F401  (before the work, so that it is not in vain where this is not installed)

    from pyramidions.curves.picture import draw_training
    from pyramidions.curves.training_log import find_log, read_training_log, run_names
    from pyramidions.files.atomic import write_file, written_together

    image = out.suffix.lower()
    if image not in (".png", ".svg"):
        raise UserError(f"--out must end in .png or .svg, but is {out}.")
    paths = [find_log(run) for run in runs]
    places = [path.resolve() for path in paths]
    if twice := next((path for n, path in enumerate(paths) if places[n] in places[:n]), None):
        raise UserError(f"Each RUN must be another log, but {twice} is given twice.")
    check_output("--out", out, f"a {image} file", places)
    check_output("--csv", table, "a CSV file with our columns", places, [out])
    logs = dict(zip(run_names(runs), map(read_training_log, paths), strict=True))
    if not any(log.curves for log in logs.values()):
        raise UserError(f"RUN must hold at least one finite number, but {', '.join(map(str, paths))} holds none.")
    with written_together():
        write_file(out, draw_training(logs, "png" if image == ".png" else "svg"))
        if table is not None:
            write_file(table, _points(logs).encode())
    for written in filter(None, (out, table)):
        click.echo(f"wrote {written}")
    click.echo(f"\n{_table(logs)}")
    for name, log in logs.items():
        for measure, count in log.left_out.items():
            values = "value of {} that is" if count == 1 else "values of {} that are"
            click.echo(f"{name}: left out {count:,} {values.format(measure)} nan or infinite")


def _points(logs: "dict[str, TrainingLog]") -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("run", "split", "measure", "updates", "value"))
    for name, log in logs.items():
        for curve in log.curves:
            writer.writerows((name, curve.split, curve.measure, *point) for point in curve.points)
    return text.getvalue()


def _table(logs: "dict[str, TrainingLog]") -> str:
    rows = [("run", "updates", "last loss", "best ROUGE", "last sharpness")]
    for name, log in logs.items():
        losses = [f"{split} {value:.3f}" for (split, _), value in _last(log, "loss", "nll_loss").items()]
        sharpness = [f"layer {layer}: {value:.3f}" for layer, value in sorted(_sharpness(log).items())]
        rows.append((name, f"{log.updates:,}", ", ".join(losses) or "-", _rouge(log), ", ".join(sharpness) or "-"))
    return "\n".join(columns(rows, left=(0, 2, 3, 4)))


def _last(log: "TrainingLog", *measures: str) -> dict[tuple[str, str], float]:
    """Return the last values by split and measure, those of the training first."""
    return {(curve.split, curve.measure): curve.points[-1][1] for curve in log.of(*measures)}


def _sharpness(log: "TrainingLog") -> dict[int, float]:
    """Return the last sharpness of each layer, while training if the log has it."""
    last = _last(log, "sharpness_")
    return {int(measure.removeprefix("sharpness_")): value for (_, measure), value in reversed(last.items())}


def _rouge(log: "TrainingLog") -> str:
    """Return the best ROUGE-2, or the best of what there is: "rouge2 14.25 at 3,000"."""
    curves = sorted(log.of("rouge"), key=lambda curve: curve.measure != "rouge2")
    if not curves:
        return "-"
    update, value = max(curves[0].points, key=lambda point: point[1])
    return f"{curves[0].measure} {value:.2f} at {update:,}"

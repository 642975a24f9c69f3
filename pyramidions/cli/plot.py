"""`pyramidions plot`."""

from pathlib import Path

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.outputs import PATH, check_output


@click.command(short_help="Draw loss, ROUGE and sharpness of training runs.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=PATH)
@click.option("-o", "--out", default="training.png", type=PATH, help="The picture, a .png or .svg file.")
@click.option("--csv", "table", type=PATH, help="Write all points to this file.")
def plot(runs: tuple[Path, ...], out: Path, table: Path | None) -> None:
    """Draw loss, ROUGE and selection sharpness over the updates, from the logs of trainings.

    RUN is what fairseq-train printed with --log-format json, or a folder with such a log as train.log. Training
    curves are thin; they show means over log intervals or over epochs, whichever are more. Validation has markers.
    Updates that a killed run did after its last checkpoint are left out.

    \b
    Example:
      pyramidions plot train.log
      pyramidions plot reproduced/paper/arxiv/table3/* -o table3.svg --csv table3.csv
    """
    import matplotlib  # noqa: F401  (before the work, so that it is not in vain where this is not installed)
    import pandas as pd

    from pyramidions.files.atomic import write_file, written_together
    from pyramidions.runs.curves import draw_training, read_curves, run_names

    image = out.suffix.lower()
    if image not in (".png", ".svg"):
        raise UserError(f"--out must end in .png or .svg, but is {out}.")
    places = [str(run.resolve()).removesuffix("/train.log") for run in runs]
    if twice := next((run for number, run in enumerate(runs) if places[number] in places[:number]), None):
        raise UserError(f"Each RUN must be another log, but {twice} is given twice.")
    check_output("--out", out, f"a {image} file", runs)
    check_output("--csv", table, "a CSV file with our columns", runs, [out])
    curves = [read_curves(run).assign(run=name) for run, name in zip(runs, run_names(runs), strict=True)]
    points = pd.concat(curves)[["run", "split", "measure", "updates", "value"]]
    finite = points[points.value.abs() < float("inf")]
    if finite.empty:
        raise UserError(f"RUN must hold at least one finite number, but {', '.join(map(str, runs))} holds none.")
    with written_together():
        write_file(out, draw_training(finite, "png" if image == ".png" else "svg"))
        if table is not None:
            write_file(table, finite.to_csv(index=False, lineterminator="\n").encode())
    for written in filter(None, (out, table)):
        click.echo(f"wrote {written}")
    found = finite.groupby(["run", "split", "measure"], sort=False)
    summary = found.agg(updates=("updates", "max"), last=("value", "last"), low=("value", "min"), high=("value", "max"))
    click.echo(f"\n{summary.reset_index().to_string(index=False)}")
    if left := len(points) - len(finite):
        click.echo(f"Left out: {left:,} values that are nan or infinite.")

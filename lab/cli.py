"""The commands of the lab: `reproduce` and `report`."""

from pathlib import Path

import click

from pyramidions.cli.commands import SETTINGS, Commands
from pyramidions.cli.outputs import PATH, check_output

CHECKOUT = Path(__file__).parents[1]


@click.group(
    cls=Commands,
    places={"report": "lab.cli:report", "reproduce": "lab.reproduce:reproduce"},
    context_settings=SETTINGS,
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Reproduce the papers' tables and figures, and compare architectures with each other."""


@click.command(short_help="Put our results beside the paper's, on one page.")
@click.argument("out", type=PATH)
@click.option("--configs", default=CHECKOUT / "configs", type=PATH, help="Folder with paper.csv.", show_default=False)
@click.option("--to", type=PATH, help="The page, a .md file.  [default: OUT/report.md]")
def report(out: Path, configs: Path, to: Path | None) -> None:
    """Gather what `reproduce` left in OUT: a page in Markdown, the same as CSV, and plots.

    The page has the rows that have results. The paper's ROUGE and speed-ups stand beside ours with intervals, except
    where ours come from other data or from models of another size, and the page says so. Figures 5 and 6 are
    the picture that lab/benchmarks/topk.py draws in OUT/topk. CSV and plots go beside the page.

    \b
    Example:
      python -m lab report reproduced/paper --to report.md
    """
    from lab.report import write_report

    check_output("--to", to, "a report")
    written = write_report(out, configs, to)
    for path in written.files:
        click.echo(f"wrote {path}")
    click.echo(written.summary)

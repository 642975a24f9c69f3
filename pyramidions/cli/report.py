"""`pyramidions report`."""

from pathlib import Path

import click

from pyramidions.cli.outputs import PATH, check_output


@click.command(short_help="Put our results beside the paper's, on one page.")
@click.argument("out", type=PATH)
@click.option("--configs", default="configs", type=PATH, help="Folder of configs, with paper.csv.")
@click.option("--to", type=PATH, help="The page, a .md file.  [default: OUT/report.md]")
def report(out: Path, configs: Path, to: Path | None) -> None:
    """Gather what `pyramidions reproduce` left in OUT: a page in Markdown, the same as CSV, and plots.

    The page has the rows that have results. The paper's ROUGE and speed-ups stand beside ours with intervals, except
    where ours come from other data or from models of another size, and the page says so. Figures 5 and 6 are
    the picture that benchmarks/topk.py draws in OUT/topk. CSV and plots go beside the page.

    \b
    Example:
      pyramidions report reproduced/paper --to report.md
    """
    from pyramidions.reproduce.report import write_report

    check_output("--to", to, "a report")
    written = write_report(out, configs, to)
    for path in written.files:
        click.echo(f"wrote {path}")
    click.echo(written.summary)

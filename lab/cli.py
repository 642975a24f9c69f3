"""The commands of the lab: `reproduce`, `report`, `correlate`, `time` and `claims`."""

from pathlib import Path

import click

from pyramidions.cli.commands import SETTINGS, Commands
from pyramidions.cli.outputs import PATH, check_output

CHECKOUT = Path(__file__).parents[1]


@click.group(
    cls=Commands,
    places={
        "claims": "lab.claims:claims_command",
        "correlate": "lab.cli:correlate",
        "report": "lab.cli:report",
        "reproduce": "lab.reproduce:reproduce",
        "time": "lab.timing:time_command",
    },
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


@click.command(short_help="Say how well metrics agree with people's judgements.")
@click.argument("scores", type=PATH)
@click.argument("judgements", type=PATH)
@click.option("--system", metavar="NAME", help="Whose summaries were judged, as SCORES names it.  [default: the first]")
def correlate(scores: Path, judgements: Path, system: str | None) -> None:
    """Correlate the figures of documents with people's judgements: Pearson, Spearman and Kendall.

    SCORES is what `pyramidions score --json` wrote. JUDGEMENTS has an id and any number of ratings for each document: a
    .jsonl file such as {"id": "a", "informativeness": 4, "errors": 1}, or a .csv file with these names in its first
    line. Several judgements of a document are averaged. Documents that nobody judged are left out.

    Brackets hold 95% bootstrap intervals over documents. "p" is that of Williams' test, whether Pearson's correlation
    differs from the strongest one with the same rating.

    \b
    Example:
      python -m lab correlate scores.json judgements.csv
    """
    from lab.correlate import correlation_report

    click.echo(correlation_report(scores, judgements, system))

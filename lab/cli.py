"""The commands of the lab: `reproduce`, `report`, `pooling`, `correlate`, `time` and `claims`."""

import click

from pyramidions.cli.commands import SETTINGS, Commands


@click.group(
    cls=Commands,
    places={
        "claims": "lab.claims:claims_command",
        "correlate": "lab.correlate:correlate",
        "pooling": "lab.pooling:pooling",
        "report": "lab.report:report",
        "reproduce": "lab.reproduce:reproduce",
        "time": "lab.timing:time_command",
    },
    context_settings=SETTINGS,
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Reproduce the papers' tables and figures, and compare architectures with each other."""

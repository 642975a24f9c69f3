"""`pyramidions user-dir`."""

from pathlib import Path

import click


@click.command("user-dir")
def user_dir() -> None:
    """Print the folder to pass to fairseq as --user-dir.

    \b
    Example:
      fairseq-train data --user-dir "$(pyramidions user-dir)" --arch deep_pyramidion ...
    """
    click.echo(Path(__file__).parents[1])

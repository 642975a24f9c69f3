"""`pyramidions user-dir`."""

import click

from pyramidions.files.processes import USER_DIR


@click.command("user-dir")
def user_dir() -> None:
    """Print the folder to pass to fairseq as --user-dir.

    \b
    Example:
      fairseq-train data --user-dir "$(pyramidions user-dir)" --arch deep_pyramidion ...
    """
    click.echo(USER_DIR)

"""`pyramidions user-dir`, and the option --user-dir."""

from pathlib import Path
from typing import Any

import click

from pyramidions.base.parts import load_parts
from pyramidions.cli.naming import naming_options
from pyramidions.cli.outputs import PATH
from pyramidions.files.processes import USER_DIR


def _load(_context: Any, _option: Any, folder: Path | None) -> None:
    if folder is not None:
        with naming_options("user_dir"):
            load_parts(folder)


#: Gives a command --user-dir; the command itself gets nothing, since the parts are there before it begins.
user_dir_option = click.option(
    "--user-dir",
    metavar="DIR",
    type=PATH,
    expose_value=False,
    callback=_load,
    help="Folder with parts of your own, that of --user-dir of fairseq-train.",
)


@click.command("user-dir")
def user_dir() -> None:
    """Print the folder to pass to fairseq as --user-dir.

    \b
    Example:
      fairseq-train data --user-dir "$(pyramidions user-dir)" --arch deep_pyramidion ...
    """
    click.echo(USER_DIR)

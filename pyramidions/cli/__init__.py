"""The command line: `pyramidions COMMAND`."""

from pyramidions.cli.commands import main

__all__ = ["main"]

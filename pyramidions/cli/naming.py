"""Errors that name the option in place of the argument that it gives."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyramidions.errors import UserError


@contextmanager
def naming_options(*arguments: str) -> Iterator[None]:
    """Let an error about one of these arguments, such as `min_len`, name the option, --min-len."""
    try:
        yield
    except UserError as error:
        names = "|".join(map(re.escape, arguments))
        raise UserError(re.sub(f"`({names})`", lambda match: option(match[1]), str(error))) from error


def option(argument: str) -> str:
    """Return the option that gives an argument."""
    return "--" + argument.replace("_", "-")

"""Makes errors about an argument name its command-line option."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError


@contextmanager
def naming_options(*arguments: str) -> Iterator[None]:
    """Rename these arguments in errors: `min_len` becomes --min-len."""
    try:
        yield
    except UserError as error:
        names = "|".join(map(re.escape, arguments))
        raise UserError(re.sub(f"`({names})`", lambda match: option(match[1]), str(error))) from error


def option(argument: str) -> str:
    """Return the option of an argument."""
    return flag_of({"no_repeat_ngram": "no_repeat_ngram_size"}.get(argument, argument))

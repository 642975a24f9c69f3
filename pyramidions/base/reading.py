"""Ways to read a document that is longer than a model reads."""

from typing import Annotated

from pyramidions.base.arguments import OneOf
from pyramidions.base.errors import UserError

#: truncate: the beginning; chunk: piece by piece; merge: the summary of the pieces' summaries; sections: section by
#: section, whatever the length; extract: the most important sentences; rewrite: each of these on its own, whatever the
#: length.
LONG = ("truncate", "chunk", "merge", "sections", "extract", "rewrite")
Long = Annotated[str, OneOf(LONG)]
#: Those that select sentences.
SELECTING = ("extract", "rewrite")
#: Those that need the headings of a document.
BY_HEADINGS = ("sections", *SELECTING)

#: The variable of the environment that holds the key of a server that writes summaries, if it wants one.
WRITER_KEY = "PYRAMIDIONS_WRITER_KEY"
#: Words of a summary by a served model, and tokens of a document that it reads at once, unless others are given.
WRITER_WORDS, WRITER_READS = 200, 8_000


def check_reading(long: str, section_types: object, select: object, language: str | None = None) -> None:
    """Refuse arguments of another way to read long documents."""
    if section_types is not None and long != "sections":
        raise UserError(f"`section_types` is an argument of `long` 'sections', but `long` is {long!r}.")
    if select is not None and long not in SELECTING:
        raise UserError(f"`select` needs `long` {' or '.join(map(repr, SELECTING))}, but `long` is {long!r}.")
    if language is not None and long not in BY_HEADINGS:
        raise UserError(f"`language` needs `long` {' or '.join(map(repr, BY_HEADINGS))}, but `long` is {long!r}.")

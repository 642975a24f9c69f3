"""Ways to read a document that is longer than a model reads."""

from typing import Annotated

from pyramidions.base.arguments import OneOf

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

"""Ways to read a document that is longer than a model reads."""

from typing import Annotated

from pyramidions.base.arguments import OneOf

#: truncate: the beginning; chunk: piece by piece; merge: the summary of the pieces' summaries; sections: section by
#: section, whatever the length; extract: the most important sentences.
LONG = ("truncate", "chunk", "merge", "sections", "extract")
Long = Annotated[str, OneOf(LONG)]
#: Those that need the headings of a document.
BY_HEADINGS = ("sections", "extract")

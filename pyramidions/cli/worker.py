"""What a command does to documents: one worker a process, made from plain options; and how results are laid out."""

import os
import shutil
import sys
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyramidions.base.errors import UserError

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText, Origin
    from pyramidions.pages.page import DocumentPage


# Numbers and names that a note lists.
_NAMED = 5


class Layout(NamedTuple):
    """How results are written.

    Attributes:
        kind: "list", by section and in lines; "text"; or "json", an object a document.
        named: texts stand below the names of their documents.
        width: of the lines of a list.
        coloured: a list may have colours.
    """

    kind: str
    named: bool = False
    width: int = 80
    coloured: bool = False


def find_layout(layout: str | None, as_json: bool, out: Path | None, named: bool) -> Layout:
    """Return how results are written.

    Args:
        layout, as_json, out: what --format, --json and --out say.
        named: as in `Layout`.

    Raises:
        UserError: two of them say different things, or the ending of the file names another format.
    """
    holds_json = out is not None and out.suffix.lower() in (".json", ".jsonl")
    if layout not in (None, "json") and (as_json or holds_json):
        raise UserError(f"--format must be json with --json, or where --out ends in .json or .jsonl, but is {layout}.")
    if as_json or layout == "json" or holds_json:
        layout = "json"
    endings = ("", ".json", ".jsonl") if layout == "json" else ("", ".txt", ".md")
    if out is not None and out.suffix.lower() not in endings:
        known = "with JSON must end in " if layout == "json" else "must end in .txt, .md, "
        raise UserError(f"--out {known}.json or .jsonl, or have no ending, but is {out}.")
    shown = out is None and _is_terminal()
    width = min(shutil.get_terminal_size().columns, 100)
    # no-color.org
    coloured = shown and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Layout(layout or ("list" if shown else "text"), named, width, coloured)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def listed(parts: Iterable[tuple[str, str]], width: int) -> str:
    """Return texts in lines of a width, each below the heading of its section if that has one."""
    return "\n\n".join(
        f"{heading}{heading and chr(10)}{textwrap.fill(text, width, initial_indent='  ', subsequent_indent='  ')}"
        for heading, text in parts
    )


def as_text(
    layout: Layout, name: str, notes: Sequence[str], query: str | None, parts: Sequence[tuple[str, str]]
) -> str:
    """Return a summary as text, below the name of its document where that is asked for, or where there are notes.

    Args:
        layout: "list" or "text".
        name: of the document.
        notes: on how the summary was made.
        query: what it answers, or None.
        parts: the heading of each section, or "", and its summary.
    """
    note = f" ({'; '.join(notes)})" if notes else ""
    head = f"{name}{note}:\n" if layout.named or note else ""
    if layout.named and query is not None:
        head += f"Query: {' '.join(query.split())}\n"
    text = listed(parts, layout.width) if layout.kind == "list" else " ".join(text for _, text in parts)
    return f"{head}{text}{chr(10) if layout.named else ''}"


class Result(NamedTuple):
    """What was made of a document.

    Attributes:
        origin: where the document comes from.
        body: what follows id and name in its object; or its text.
        remarks: keys into the command's closing notes.
    """

    origin: "Origin"
    body: dict[str, Any] | str
    remarks: tuple[str, ...] = ()


class Checked:
    """A summary beside its document.

    Args:
        summary: what is looked for.
        document: its text; None to check nothing.
        language: of both; None to detect it.

    Attributes:
        about: values that JSON holds.
        notes: for the reader.
        language: of both; None where nothing is checked.
    """

    def __init__(self, summary: str, document: str | None, language: str | None = None) -> None:
        self.about: dict[str, Any] = {}
        self.notes: list[str] = []
        self.language: str | None = None
        if document is not None:
            from pyramidions.scoring.summary_check import check_summary

            found = check_summary(summary, document, language)
            self.language = found.document.language
            self.about |= {"language": self.language, "check": found.to_dicts()}
            self.notes.append(found.told.removesuffix("."))
            if missing := [each for sentence in found.sentences for each in sentence.missing]:
                self.notes[-1] += f" ({', '.join(missing[:_NAMED])}{', …' if len(missing) > _NAMED else ''})"


class Report(Protocol):
    """Hears how the work goes on."""

    def add(self, size: float) -> None:
        """Count bytes: each once when it is read, and once when its result is made."""

    def fail(self, error: UserError) -> None:
        """Report a document that has no result."""

    def note(self, message: str) -> None:
        """Write a line that is no error."""


class Worker(ABC):
    """Makes results of documents.

    Attributes:
        said: a sentence about its precision and the machine; None where nothing depends on it.
        page: what gathers its documents for a page; None without one.
    """

    said: str | None = None
    page: "DocumentPage | None" = None

    @abstractmethod
    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        """Yield the results of documents that are computed together, in their order.

        Args:
            documents: are read one by one.
            report: receives those without a result.
        """

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
    from pyramidions.documents.source import DocumentOrigin, InputText
    from pyramidions.pages.page import DocumentPage


class Layout(NamedTuple):
    """How results are written."""

    kind: str  # "list", by section and in lines; "text"; or "json", an object a document
    named: bool = False  # texts stand below the names of their documents
    width: int = 80  # of the lines of a list
    coloured: bool = False  # a list may have colours


def find_layout(layout: str | None, as_json: bool, out: Path | None, named: bool) -> Layout:
    """Return how results are written, by --format, --json and --out; refuse what these contradict each other in."""
    holds_json = out is not None and out.suffix.lower() in (".json", ".jsonl")
    if layout not in (None, "json") and (as_json or holds_json):
        raise UserError(f"--format must be json with --json, or where --out ends in .json or .jsonl, but is {layout}.")
    if as_json or layout == "json" or holds_json:
        layout = "json"
    endings = ("", ".json", ".jsonl") if layout == "json" else ("", ".txt", ".md")
    if out is not None and out.suffix.lower() not in endings:
        known = "with JSON must end in " if layout == "json" else "must end in .txt, .md, "
        pages = "; --explain writes pages" if out.suffix.lower() in (".html", ".htm") else ""
        raise UserError(f"--out {known}.json or .jsonl, or have no ending, but is {out}{pages}.")
    shown = out is None and _is_terminal()
    width = min(shutil.get_terminal_size().columns, 100)
    # no-color.org
    coloured = shown and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Layout(layout or ("list" if shown else "text"), named, width, coloured)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def listed(parts: Iterable[tuple[str, str]], width: int) -> str:
    """Return texts in lines of a width, each below its heading, or "" for none."""
    return "\n\n".join(
        f"{heading}{heading and chr(10)}{textwrap.fill(text, width, initial_indent='  ', subsequent_indent='  ')}"
        for heading, text in parts
    )


def as_text(layout: Layout, name: str, query: str | None, text: str, notes: Sequence[str] = ()) -> str:
    """Return a summary below the name of its document and its query, where these are asked for or there are notes."""
    note = f" ({'; '.join(notes)})" if notes else ""
    head = f"{name}{note}:\n" if layout.named or note else ""
    if layout.named and query is not None:
        head += f"Query: {' '.join(query.split())}\n"
    return f"{head}{text}{chr(10) if layout.named else ''}"


class Result(NamedTuple):
    """What was made of a document."""

    origin: "DocumentOrigin"  # where the document comes from
    body: dict[str, Any] | str  # what follows id and name in its object; or its text
    remarks: tuple[str, ...] = ()  # keys into the command's closing notes


class Report(Protocol):
    """Hears how the work goes on."""

    def add(self, size: float) -> None:
        """Count bytes: each once when it is read, and once when its result is made."""

    def fail(self, error: UserError) -> None:
        """Report a document that has no result."""

    def note(self, message: str) -> None:
        """Write a line that is no error."""


class Worker(ABC):
    """Makes results of documents."""

    said: str | None = None  # a sentence about its precision and the machine; None where nothing depends on it
    page: "DocumentPage | None" = None  # what gathers its documents for a page; None without one

    @abstractmethod
    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        """Yield the results of documents that are computed together, in their order; report those without one."""


def each_query(documents: "Iterable[InputText]", queries: Sequence[str]) -> "Iterable[InputText]":
    """Return the documents, each once for each query; as they are without queries."""
    return _repeated(documents, queries) if queries else documents


def _repeated(documents: "Iterable[InputText]", queries: Sequence[str]) -> "Iterator[InputText]":
    for document in documents:
        before = (document.number - 1) * len(queries)
        for number, query in enumerate(queries, before + 1):
            yield document._replace(query=query, size=document.size // len(queries), number=number)


def refusal(document: "InputText", error: UserError, budget: str = "") -> UserError:
    """Return an error about a document, whose query, and ``budget``, are no arguments of the caller."""
    said = str(error).replace("`query`", "its query", 1)
    return UserError(f"{document.origin.name}: {said.replace('`budget`', budget, 1) if budget else said}")

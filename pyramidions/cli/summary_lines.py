"""What `pyramidions summarize` writes about a document: a JSON object, or text."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyramidions.cli.outputs import listed
from pyramidions.data.ids import UniqueIds
from pyramidions.inference.documents import Origin
from pyramidions.inference.file_formats import holds_records

if TYPE_CHECKING:
    from pyramidions.inference.stream import Summarized
    from pyramidions.inference.summary import Summary


class SummaryIds:
    """The ids of documents, as `prepare` gives them: those of the records, else a position or a name.

    Args:
        paths: of all files that are read.
        number_repeated: make repeated ids unique; not in a shard, since `join` does it.
    """

    def __init__(self, paths: list[Path], number_repeated: bool = True) -> None:
        self._by_position = len(paths) == 1 and holds_records(paths[0])
        self._given = UniqueIds(number_repeated=True) if number_repeated else None

    def of(self, origin: Origin) -> str:
        """Return the id of the document that comes next."""
        position = str(origin.position) if self._by_position else origin.name
        own = position if origin.id is None else origin.id
        return own if self._given is None else self._given.add(own, origin.name)


def json_line(result: "Summarized", ids: SummaryIds, long: str) -> str:
    """Return a document's summary as a JSON object.

    Args:
        result: the document and its summaries.
        ids: of all documents.
        long: how long documents are read.
    """
    from pyramidions.inference.summary import as_plain

    origin, summaries = result
    about = {"id": ids.of(origin), "name": origin.name, "long": long, **as_plain(summaries)}
    return json.dumps(about, ensure_ascii=False)


def text_line(result: "Summarized", named: bool, layout: str) -> str:
    """Return a document's summary and notes as text.

    Args:
        result: the document and its summaries.
        named: put its name and its query above it, and an empty line below.
        layout: "text", or "list".
    """
    from pyramidions.inference.summary import by_section

    origin, summaries = result
    notes = _notes(summaries)
    note = f" ({'; '.join(notes)})" if notes else ""
    head = f"{origin.name}{note}:\n" if named or note else ""
    if named and (query := summaries[0].query) is not None:
        head += f"Query: {' '.join(query.split())}\n"
    text = listed(by_section(summaries)) if layout == "list" else " ".join(summary.text for summary in summaries)
    return f"{head}{text}{chr(10) if named else ''}"


def _notes(summaries: list["Summary"]) -> list[str]:
    """Return what a reader of a summary should know of how it was made."""
    first = summaries[0].coverage
    read = sum(summary.read_tokens for summary in summaries)
    whole = sum(summary.document_tokens for summary in summaries)
    notes = [] if first.note is None else [first.note]
    if first.heading is not None:
        headings = ", ".join(str(summary.coverage.heading) for summary in summaries)
        notes.append(f"by section: {headings}")
    elif summaries[0].pieces:
        notes.append(f"the summary of the summaries of {len(summaries[0].pieces)} pieces")
    elif len(summaries) > 1:
        notes.append(f"in {len(summaries)} pieces, summarized one by one")
    if first.heading is None and (short := summaries[-1].shortened_to) is not None:
        notes.append(f"{'the last piece' if len(summaries) > 1 else 'the text'} is short: at most {short} tokens")
    if first.sentences is not None:
        number, of = first.sentences
        notes.append(f"{number:,} of {of:,} sentences, selected by {first.selected_by}, were read")
    elif first.heading is not None:
        cut = [summary.coverage.heading for summary in summaries if summary.was_cut]
        notes += [f"only the beginning of {', '.join(map(str, cut))} was read"] if cut else []
        if left_out := sum(summary.coverage.left_out for summary in summaries):
            notes.append(f"{left_out:,} of {whole + left_out:,} tokens stand in none of these sections")
    elif read < whole:
        notes.append(f"only the first {read:,} of {whole:,} tokens were read")
    return notes

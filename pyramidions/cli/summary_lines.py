"""What `pyramidions summarize` writes about a document: a JSON object, or text."""

import json
from pathlib import Path

from pyramidions.data.ids import UniqueIds
from pyramidions.inference.documents import Origin
from pyramidions.inference.file_formats import holds_records
from pyramidions.inference.stream import Summarized


class SummaryIds:
    """The ids of documents, as `prepare` gives them: those of the records, else a position or a name.

    Args:
        paths: of all files that are read.
    """

    def __init__(self, paths: list[Path]) -> None:
        self._by_position = len(paths) == 1 and holds_records(paths[0])
        self._given = UniqueIds(number_repeated=True)

    def of(self, origin: Origin) -> str:
        """Return the id of the document that comes next."""
        position = str(origin.position) if self._by_position else origin.name
        return self._given.add(position if origin.id is None else origin.id, origin.name)


def json_line(result: Summarized, ids: SummaryIds) -> str:
    """Return a document's summary as a JSON object."""
    origin, summaries = result
    about = {
        "id": ids.of(origin),
        "name": origin.name,
        "summary": " ".join(summary.text for summary in summaries),
        "pieces": len(summaries),
        "scores": [summary.score for summary in summaries],
        "document_tokens": sum(summary.document_tokens for summary in summaries),
        "read_tokens": sum(summary.read_tokens for summary in summaries),
    }
    return json.dumps(about, ensure_ascii=False)


def text_line(result: Summarized, named: bool) -> str:
    """Return a document's summary and notes as text.

    Args:
        result: the document and its summaries.
        named: put its name above it, and an empty line below.
    """
    origin, summaries = result
    read = sum(summary.read_tokens for summary in summaries)
    whole = sum(summary.document_tokens for summary in summaries)
    notes = []
    if len(summaries) > 1:
        notes.append(f"in {len(summaries)} pieces, summarized one by one")
    if (short := summaries[-1].shortened_to) is not None:
        notes.append(f"{'the last piece' if len(summaries) > 1 else 'the text'} is short: at most {short} tokens")
    if read < whole:
        notes.append(f"only the first {read:,} of {whole:,} tokens were read")
    note = f" ({'; '.join(notes)})" if notes else ""
    head = f"{origin.name}{note}:\n" if named or note else ""
    return f"{head}{' '.join(summary.text for summary in summaries)}{chr(10) if named else ''}"

"""The aspects of a report as queries."""

from collections.abc import Iterator
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.documents.records import Record

_REPORT, _HIGHLIGHT = ASPECT_COLUMNS = ("report", "highlight")


def aspects_of_report(record: Record) -> Iterator[Record]:
    """Yield a record for each part of the highlights of a GAO report, named REPORT/1, REPORT/2 and so on.

    Its query is the title of the part, such as "What GAO Found"; its source is the whole report, a line for each title
    and paragraph.

    Raises:
        UserError: the report is not as the authors' dataset has it.
    """
    value = record.value
    try:
        source = "\n".join(line for section in value[_REPORT] for line in _lines(section))
        parts = [(_line(part["section_title"]), list(map(_line, part["paragraphs"]))) for part in value[_HIGHLIGHT]]
    except (AttributeError, KeyError, TypeError):
        raise UserError(
            f"{record.place}: the fields {_REPORT!r} and {_HIGHLIGHT!r} must be lists of sections with a "
            "`section_title` and `paragraphs`."
        ) from None
    for number, (title, paragraphs) in enumerate(parts, 1):
        aspect = {"id": f"{value['id']}/{number}", "source": source, "target": paragraphs, "query": title}
        yield record._replace(value=aspect, place=f"{record.place}, aspect {number}")


def _lines(section: dict[str, Any]) -> Iterator[str]:
    title = _line(section["section_title"])
    # The letter holds the whole report.
    if title != "Letter":
        yield title
    yield from map(_line, section["paragraphs"])
    for inner in section["subsections"]:
        yield from _lines(inner)


def _line(text: str) -> str:
    return " ".join(text.split())

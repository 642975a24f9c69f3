"""Reads papers in JSON as S2ORC has them (Lo et al. 2020), and as its program s2orc-doc2json and CORD-19 write them."""

from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.documents.paper_xml import Paper, begins_with_any, without_numbers
from pyramidions.files.bounded import printable

# One of these stands at the beginning of a file.
_KEYS = ('"paper_id"', '"body_text"', '"pdf_parse"', '"latex_parse"')
#: Where the text lies; "" for the object itself.
_PARSES = ("pdf_parse", "latex_parse", "")
_BODY_LEVEL = 2  # of the headings of sections, below the title


def may_be_json_paper(path: Path) -> bool:
    """Return whether a .json file begins as a paper may; True for any other file."""
    return path.suffix.lower() != ".json" or begins_with_any(path, _KEYS)


def read_json_paper(path: Path) -> Paper:
    """Read a paper: its title, its abstract, and its text by sections, without numbers of citations.

    Args:
        path: of a .json file.

    Raises:
        UserError: it is no JSON, or no such paper.
    """
    name = printable(path)
    try:
        about = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{name} must hold JSON, but {error}.") from None
    found = about if isinstance(about, dict) else {}
    parses = (found if not key else found.get(key) for key in _PARSES)
    parse = next((each for each in parses if isinstance(each, dict) and _paragraphs(each, "body_text")), None)
    if parse is None:
        raise UserError(f"{name} must be a paper of S2ORC, with `body_text`, but is not.")
    metadata = found.get("metadata")
    title = found.get("title") or (metadata.get("title") if isinstance(metadata, dict) else None)
    abstract = found.get("abstract")
    if not isinstance(abstract, str):
        abstract = " ".join(_text(each) for each in _paragraphs(parse, "abstract") or _paragraphs(found, "abstract"))
    body: list[tuple[int, str]] = []
    heading = None
    for paragraph in _paragraphs(parse, "body_text"):
        if (section := paragraph.get("section")) != heading:
            heading = section
            if isinstance(section, str) and section.strip():
                number = paragraph.get("sec_num")
                dots = number.strip(".").count(".") if isinstance(number, str) else 0
                body.append((_BODY_LEVEL + dots, " ".join(section.split())))
        if text := _text(paragraph):
            body.append((0, text))
    return Paper(" ".join(title.split()) if isinstance(title, str) else "", " ".join(abstract.split()), body)


def _paragraphs(parse: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the paragraphs under a key; none if there are no such."""
    found = parse.get(name)
    if not isinstance(found, list):
        return []
    return [each for each in found if isinstance(each, dict) and isinstance(each.get("text"), str)]


def _text(paragraph: dict[str, Any]) -> str:
    text: str = paragraph["text"]
    spans = paragraph.get("cite_spans")
    places = [
        (span["start"], span["end"])
        for span in (spans if isinstance(spans, list) else [])
        if isinstance(span, dict) and isinstance(span.get("start"), int) and isinstance(span.get("end"), int)
    ]
    return without_numbers(text, places)

"""Text out of the files that people have."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyramidions.errors import UserError

ENDINGS = (".txt", ".md", ".html", ".htm", ".pdf", ".jsonl")
# What a page holds beside its text.
_NO_TEXT = ("script", "style", "noscript", "template", "nav", "svg", "head")


class Document(NamedTuple):
    """A text, and where it comes from."""

    name: str
    text: str


def read_documents(path: Path, field: str) -> Iterator[Document]:
    """Yield the documents of a file: one, or those of the lines of a .jsonl file.

    Args:
        path: .txt, .md, .html, .htm, .pdf or .jsonl; its ending decides.
        field: of the objects in a .jsonl file.

    Raises:
        UserError: another ending, or a file that cannot be read as what its ending says.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UserError(f"{path} must end in {', '.join(ENDINGS)}.")
    if ending == ".jsonl":
        yield from _json_lines(path, field)
    elif ending == ".pdf":
        yield Document(str(path), _pdf(path))
    else:
        text = _text(path)
        yield Document(str(path), _page(text) if ending.startswith(".htm") else text)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} must be UTF-8, but is not at byte {error.start}.") from None


def _page(html: str) -> str:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser")
    for element in soup(_NO_TEXT):
        element.decompose()
    return soup.get_text(" ")


def _pdf(path: Path) -> str:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells of every flaw that it gets over
    try:
        text = "\n".join(page.extract_text() for page in PdfReader(path).pages)
    except OSError:
        raise
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        # A damaged file makes it raise whatever it happens to run into.
        raise UserError(f"{path} cannot be read as PDF ({type(error).__name__}).") from None
    if not text.strip():
        raise UserError(f"{path} holds no text, only pictures perhaps: let a program recognise its characters first.")
    return text


def _json_lines(path: Path, field: str) -> Iterator[Document]:
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"{place} must be a JSON object.") from None
        if not isinstance(found, dict) or not isinstance(found.get(field), str):
            raise UserError(f"{place} must be a JSON object with a text under {field!r} (--field).")
        yield Document(place, found[field])

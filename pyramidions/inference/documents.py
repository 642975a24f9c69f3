"""Text out of the files that people have."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pyramidions.data.windows import holds_text
from pyramidions.errors import UserError
from pyramidions.inference.page_text import page_text

_MEBIBYTE = 2**20
#: The largest file of a kind that is read, for .jsonl the longest line, in MiB: it is held in memory, some kinds as a
#: multiple of it.
LIMITS = {".txt": 1024, ".md": 1024, ".html": 256, ".htm": 256, ".pdf": 256, ".jsonl": 128}
#: Likewise, what draws a page of a .pdf file: its text is found in a time that grows with the square of it.
PAGE_LIMIT = 16
ENDINGS = tuple(LIMITS)
#: The path of standard input, whose text is one document.
STANDARD_INPUT = Path("-")


class Document(NamedTuple):
    """A text, where it comes from, and how many bytes of its file it takes."""

    name: str
    text: str
    size: int


def list_files(given: Iterable[Path]) -> list[Path]:
    """Return files and, in place of each folder, the files inside that `read_documents` reads.

    A folder without any stays, to be refused when it is read. Without any path, standard input is the only file.
    """
    paths: list[Path] = []
    for path in given:
        inside = path.rglob("*") if _is_folder(path) else ()
        paths += sorted(p for p in inside if p.suffix.lower() in ENDINGS and not _is_folder(p)) or [path]
    return paths or [STANDARD_INPUT]


def read_documents(path: Path, field: str) -> Iterator[Document | UserError]:
    """Yield the documents of a file: one, or those of the lines of a .jsonl file.

    Args:
        path: .txt, .md, .html, .htm, .pdf or .jsonl; its ending decides. Or `STANDARD_INPUT`.
        field: of the objects in a .jsonl file.

    Yields:
        Documents that hold text, and an error in place of each that does not and of each line that is no document.

    Raises:
        UserError: a folder, another ending, or a file that is too large or not what its ending says; of a .jsonl file,
            its first line decides.
        OSError: a file that cannot be read at all.
    """
    for document in _documents(path, field):
        if isinstance(document, Document) and not holds_text(document.text):
            yield UserError(f"{document.name} holds no text.")
        else:
            yield document


def _documents(path: Path, field: str) -> Iterator[Document | UserError]:
    ending, name = path.suffix.lower(), _printable(path)
    if path == STANDARD_INPUT:
        yield _standard_input()
    elif _is_folder(path):
        raise UserError(f"{name} holds no file that ends in {', '.join(ENDINGS)}.")
    elif ending not in ENDINGS:
        raise UserError(f"{name} must end in {', '.join(ENDINGS)}.")
    elif ending == ".jsonl":
        yield from _json_lines(path, field)
    else:
        size = path.stat().st_size
        _require_at_most(LIMITS[ending], size, name)
        yield Document(name, _READERS[ending](path), size)


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir()
    return False


def _standard_input() -> Document:
    if sys.stdin.isatty():
        print("Reading standard input, to its end (Ctrl-D).", file=sys.stderr)
    content = _at_most(sys.stdin.buffer.read, LIMITS[".txt"], "Standard input")
    return Document("standard input", _decoded(content, "Standard input"), len(content))


def _printable(path: Path) -> str:
    """Return a path as text, also where its bytes are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def _require_at_most(limit: int, size: int, name: str) -> None:
    if size > limit * _MEBIBYTE:
        raise UserError(f"{name} must hold at most {limit} MiB, but holds {size / _MEBIBYTE:,.1f}.")


def _at_most(read: Callable[[int], bytes], limit: int, name: str) -> bytes:
    # One byte beyond the limit tells that there is too much.
    content = read(limit * _MEBIBYTE + 1)
    if len(content) > limit * _MEBIBYTE:
        raise UserError(f"{name} must hold at most {limit} MiB, but holds more.")
    return content


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} must be UTF-8, but is not at byte {error.start}.") from None


def _text(path: Path) -> str:
    return _decoded(path.read_bytes(), _printable(path))


def _page(path: Path) -> str:
    return page_text(_text(path))


def _pdf(path: Path) -> str:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells of every flaw that it gets over
    name = _printable(path)
    texts = []
    with path.open("rb") as file:
        try:
            for number, page in enumerate(PdfReader(file).pages, 1):
                if (drawing := page.get_contents()) is not None:
                    _require_at_most(PAGE_LIMIT, len(drawing.get_data()), f"{name}, page {number},")
                texts.append(page.extract_text())
        except UserError:
            raise
        except (DependencyError, FileNotDecryptedError):
            raise UserError(f"{name} is encrypted: save it without a password first.") from None
        except Exception as error:
            # A damaged file makes it raise whatever it happens to run into.
            raise UserError(f"{name} cannot be read as PDF ({type(error).__name__}).") from None
    text = "\n".join(texts)
    if not text.strip():
        raise UserError(f"{name} holds no text, only pictures perhaps: let a program recognise its characters first.")
    return text


def _json_lines(path: Path, field: str) -> Iterator[Document | UserError]:
    """Yield the documents line by line; a file whose first line is none is refused as a whole."""
    any_found = False
    with path.open("rb") as file:
        for number in count(1):
            place = f"{_printable(path)}:{number}"
            try:
                line = _line(file, place)
                if not line and number == 1:
                    raise UserError(f"{_printable(path)} holds no line.")
                if not line:
                    return
                if not line.strip():
                    continue
                found: Document | UserError = Document(place, _field(line, place, field), len(line))
                any_found = True
            except UserError as error:
                if not any_found:
                    raise
                found = error
            yield found


def _line(file: BinaryIO, place: str) -> bytes:
    """Read a line; of one that is too long, the rest is passed over."""
    try:
        return _at_most(file.readline, LIMITS[".jsonl"], place)
    except UserError:
        while (rest := file.readline(_MEBIBYTE)) and not rest.endswith(b"\n"):
            pass
        raise


def _field(line: bytes, place: str, field: str) -> str:
    text = _decoded(line, place)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"{place} must be a JSON object.") from None
    if not isinstance(found, dict) or not isinstance(found.get(field), str):
        held = f", but holds {', '.join(map(repr, found)) or 'nothing'}" if isinstance(found, dict) else ""
        raise UserError(f"{place} must be a JSON object with a text under {field!r} (--field){held[:200]}.")
    return str(found[field])


_READERS = {".txt": _text, ".md": _text, ".html": _page, ".htm": _page, ".pdf": _pdf}

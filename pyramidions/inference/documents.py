"""Text out of the files that people have."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pyramidions.data.bounded import LINE_LIMIT, MEBIBYTE, at_most, printable, regular_size, require_at_most
from pyramidions.data.readers import kind, record_id
from pyramidions.data.windows import holds_text
from pyramidions.errors import UserError
from pyramidions.inference.page_text import page_text
from pyramidions.strict_json import NumberError, parse_json

#: The largest file of a kind that is read, for .jsonl the longest line, in MiB: it is held in memory, some kinds as a
#: multiple of it.
LIMITS = {
    ".txt": 1024,
    ".md": 1024,
    ".html": 256,
    ".htm": 256,
    ".pdf": 256,
    ".docx": 256,
    ".jsonl": LINE_LIMIT,
}
#: Likewise, what draws a page of a .pdf file: its text is found in a time that grows with the square of it.
PAGE_LIMIT = 16
#: Likewise, the XML in a .docx file, unpacked: a tree is built of it.
XML_LIMIT = 32
ENDINGS = tuple(LIMITS)
#: The path of standard input, whose text is one document.
STANDARD_INPUT = Path("-")


class Document(NamedTuple):
    """A text and where it comes from.

    Attributes:
        name: its file, of a .jsonl file with the line.
        id: what its record calls it, or None.
        position: the line of a .jsonl file, from 1; else 1.
        text: the whole text.
        size: bytes that it takes of its file.
    """

    name: str
    id: str | None
    position: int
    text: str
    size: int


class Files(NamedTuple):
    """Files to read, and those found in folders that are not read."""

    paths: list[Path]
    skipped: list[Path]


def list_files(given: Iterable[Path]) -> Files:
    """Return files and, in place of each folder, the files inside that `read_documents` reads.

    A folder without any stays, to be refused when it is read. Without any path, standard input is the only file.
    """
    files = Files([], [])
    for path in given:
        inside = _inside(path, files.skipped) if _is_folder(path) else []
        files.paths.extend([file for file in inside if _is_readable(file)] or [path])
        files.skipped.extend(file for file in inside if not _is_readable(file))
    return files if files.paths else Files([STANDARD_INPUT], [])


def _inside(folder: Path, unreadable: list[Path]) -> list[Path]:
    """Return all files of a folder and its subfolders in order; links to folders are not followed."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=lambda error: unreadable.append(Path(error.filename))):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found += [Path(place) / name for name in [*names, *links]]
    return sorted(found)


def _is_readable(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and path.is_file()


def read_documents(
    path: Path, field: str, id_field: str | None = None, *, refuse: Callable[[UserError], object]
) -> Iterator[Document]:
    """Yield the documents of a file: one, or those of the lines of a .jsonl file.

    Args:
        path: .txt, .md, .html, .htm, .pdf, .docx or .jsonl; its ending decides. Or `STANDARD_INPUT`.
        field: of the objects in a .jsonl file, with the text.
        id_field: likewise, with the id; if None, the field that `prepare` takes, where an object has it.
        refuse: told of each document without text and of each line that is no document; the others are read.

    Yields:
        Documents that hold text.

    Raises:
        UserError: a folder, another ending, or a file that is not regular, too large or not what its ending says; of a
            .jsonl file, its first line decides.
        OSError: a file that cannot be read at all.
    """
    for document in _documents(path, field, id_field, refuse):
        if holds_text(document.text):
            yield document
        else:
            refuse(UserError(f"{document.name} holds no text."))


def _documents(
    path: Path, field: str, id_field: str | None, refuse: Callable[[UserError], object]
) -> Iterator[Document]:
    ending, name = path.suffix.lower(), printable(path)
    if path == STANDARD_INPUT:
        yield _standard_input()
    elif _is_folder(path):
        raise UserError(f"{name} holds no file that ends in {', '.join(ENDINGS)}.")
    elif ending not in ENDINGS:
        raise UserError(f"{name} must end in {', '.join(ENDINGS)}.")
    else:
        size = regular_size(path)
        if ending == ".jsonl":
            yield from _json_lines(path, field, id_field, refuse)
        else:
            require_at_most(LIMITS[ending], size, name)
            yield Document(name, None, 1, _READERS[ending](path), size)


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir()
    return False


def _standard_input() -> Document:
    if sys.stdin.isatty():
        print("Reading standard input, to its end (Ctrl-D).", file=sys.stderr)
    content = at_most(sys.stdin.buffer.read, LIMITS[".txt"], "Standard input")
    return Document("standard input", None, 1, _decoded(content, "Standard input"), len(content))


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} must be UTF-8, but is not at byte {error.start}.") from None


def _text(path: Path) -> str:
    return _decoded(path.read_bytes(), printable(path))


def _page(path: Path) -> str:
    return page_text(_text(path), printable(path))


def _pdf(path: Path) -> str:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells of every flaw that it gets over
    name = printable(path)
    texts = []
    with path.open("rb") as file:
        try:
            for number, page in enumerate(PdfReader(file).pages, 1):
                if (drawing := page.get_contents()) is not None:
                    require_at_most(PAGE_LIMIT, len(drawing.get_data()), f"{name}, page {number},")
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


def _docx(path: Path) -> str:
    import zipfile

    import mammoth

    name = printable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
        size = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
        require_at_most(XML_LIMIT, size, f"The XML in {name}")
        with path.open("rb") as file:
            return str(mammoth.extract_raw_text(file).value)
    except UserError:
        raise
    except Exception as error:
        # A damaged file makes it raise whatever it happens to run into.
        raise UserError(f"{name} cannot be read as .docx ({type(error).__name__}).") from None


def _json_lines(
    path: Path, field: str, id_field: str | None, refuse: Callable[[UserError], object]
) -> Iterator[Document]:
    """Yield the documents line by line; a file whose first line is none is refused as a whole."""
    any_found = False
    with path.open("rb") as file:
        for number in count(1):
            place = f"{printable(path)}:{number}"
            try:
                line = _line(file, place)
                if not line and number == 1:
                    raise UserError(f"{printable(path)} holds no line.")
                if not line:
                    return
                if not line.strip():
                    continue
                record = _record(line, place)
                document = Document(
                    place, _id(record, place, id_field), number, _field(record, place, field), len(line)
                )
            except UserError as error:
                if not any_found:
                    raise
                refuse(error)
                continue
            any_found = True
            yield document


def _line(file: BinaryIO, place: str) -> bytes:
    """Read a line; of one that is too long, the rest is passed over."""
    try:
        return at_most(file.readline, LIMITS[".jsonl"], place)
    except UserError:
        while (rest := file.readline(MEBIBYTE)) and not rest.endswith(b"\n"):
            pass
        raise


def _record(line: bytes, place: str) -> dict[str, Any]:
    text = _decoded(line, place)
    try:
        found = parse_json(text)
    except NumberError as error:
        raise UserError(f"{place} must be a JSON object with numbers that fit, but {error}.") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{place} must be a JSON object.")
    return found


def _field(record: dict[str, Any], place: str, field: str) -> str:
    if isinstance(text := record.get(field), str):
        return text
    held = f"holds {', '.join(map(repr, record)) or 'nothing'}"[:200]
    found = f"{field!r} is {kind(record[field])}" if field in record else held
    raise UserError(f"{place} must be a JSON object with a text under {field!r} (--field), but {found}.")


def _id(record: dict[str, Any], place: str, id_field: str | None) -> str | None:
    found = record_id(record, id_field)
    if found is None and id_field is not None:
        raise UserError(f"{place} must be a JSON object with an id under {id_field!r} (--id-field), but has none.")
    return found


_READERS = {".txt": _text, ".md": _text, ".html": _page, ".htm": _page, ".pdf": _pdf, ".docx": _docx}

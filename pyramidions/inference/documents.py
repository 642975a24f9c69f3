"""Documents from the files that people have."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pyramidions.data.readers import PLAIN, RELEASE, joined, kind, record_id
from pyramidions.data.records import DAMAGE, OPENERS, pass_blank_lines
from pyramidions.data.sections import sectioned_text
from pyramidions.errors import UserError
from pyramidions.files.bounded import MEBIBYTE, at_most, printable, regular_size
from pyramidions.inference.file_formats import LIMITS, decoded, file_ending, file_text, holds_records, text_lines
from pyramidions.inference.share import Turns
from pyramidions.strict_json import NumberError, parse_json
from pyramidions.text.headings import Lines
from pyramidions.text.text_windows import holds_text

ENDINGS = tuple(LIMITS)
#: The path of standard input, whose text is one document.
STANDARD_INPUT = Path("-")

#: Fields that hold the text of a record, in the order in which they are looked for; the latter two as in `prepare`.
TEXT_FIELDS = ("text", PLAIN.source, RELEASE.source)

#: Told of each file, document and line that cannot be read; the others are.
Refuse = Callable[[UserError], object]

#: Progress callback: bytes done since the last call. Each byte of a file counts twice: when its text is read and when
#: its summary is written.
Progress = Callable[[float], object]


class Origin(NamedTuple):
    """Where a document comes from.

    Attributes:
        name: its file, of a .jsonl file with the line.
        id: of its record, or None.
        position: the line of a .jsonl file, from 1; else 1.
    """

    name: str
    id: str | None
    position: int


class InputText(NamedTuple):
    """A document to summarize.

    Attributes:
        origin: where it comes from.
        text: the whole text.
        size: bytes that it takes of its file.
        reference: its summary by a person, where a field of its record was named; else None.
        query: what its summary answers; None without queries.
        number: its place among all inputs (files, and lines of .jsonl files), from 1. With several queries, each input
            counts once for each of them.
        lines: of a plain text of any length, in place of its text; they are read when they are asked for.
    """

    origin: Origin
    text: str
    size: int
    reference: str | None = None
    query: str | None = None
    number: int = 1
    lines: Lines | None = None

    @property
    def holds_text(self) -> bool:
        """Whether there is more than white space."""
        found = False
        # All lines are read: one that is not UTF-8 must be refused before the document is.
        for line in (self.text,) if self.lines is None else self.lines():
            found = found or holds_text(line)
        return found


class Files(NamedTuple):
    """Files to read, and those found in folders that are not read."""

    paths: list[Path]
    skipped: list[Path]


def list_files(given: Iterable[Path]) -> Files:
    """Return files and, in place of each folder, the files inside that `read_documents` reads.

    Hidden files and folders inside, whose names begin with a dot, are passed over. A folder without files that are read
    stays in the list; `read_documents` refuses it. Without any path, standard input is the only file.
    """
    files = Files([], [])
    for path in given:
        inside = _inside(path, files.skipped) if _is_folder(path) else []
        files.paths.extend([file for file in inside if _is_readable(file)] or [path])
        files.skipped.extend(file for file in inside if not _is_readable(file))
    return files if files.paths else Files([STANDARD_INPUT], [])


def _inside(folder: Path, unreadable: list[Path]) -> list[Path]:
    """Return all files of a folder and its subfolders in order, but hidden ones; links to folders are not followed."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=lambda error: unreadable.append(Path(error.filename))):
        # The walk goes on into the folders that are left in its list.
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found += [Path(place) / name for name in [*names, *links] if not name.startswith(".")]
    return sorted(found)


def _is_readable(path: Path) -> bool:
    return file_ending(path) in ENDINGS and path.is_file()


def read_files(
    paths: Iterable[Path],
    field: str | None,
    id_field: str | None = None,
    *,
    headings: bool = False,
    reference_field: str | None = None,
    query_field: str | None = None,
    by_line: bool = False,
    refuse: Refuse,
    turns: Turns | None = None,
) -> Iterator[InputText]:
    """Yield the documents of several files, of which some may not be readable.

    Args:
        paths: of the files.
        field, id_field, headings, reference_field, query_field, by_line: as in `read_documents`.
        refuse: told of each file that cannot be read, and of what `read_documents` refuses in the others.
        turns: numbers the inputs, and says which are read; all if None.
    """
    turns = turns or Turns()
    for path in paths:
        try:
            fields: dict[str, Any] = {"reference_field": reference_field, "query_field": query_field}
            fields |= {"headings": headings, "by_line": by_line}
            yield from read_documents(path, field, id_field, **fields, refuse=refuse, turns=turns)
        except UserError as error:
            refuse(error)
        except OSError as error:
            refuse(UserError(f"{path}: {error.strerror}."))


def read_documents(
    path: Path,
    field: str | None,
    id_field: str | None = None,
    *,
    headings: bool = False,
    reference_field: str | None = None,
    query_field: str | None = None,
    by_line: bool = False,
    refuse: Refuse,
    turns: Turns | None = None,
) -> Iterator[InputText]:
    """Yield the documents of a file: one, or those of the lines of a .jsonl file.

    Args:
        path: a file that ends in one of `ENDINGS`, or `STANDARD_INPUT`.
        field: of the objects in a .jsonl file, with the text or a list of sentences; if None, the first of
            `TEXT_FIELDS` that an object has.
        id_field: likewise, with the id; if None, the field that `prepare` takes, where an object has it.
        headings: write headings in markdown, as `file_text` does; the text of an object in a .jsonl file is that of its
            `sections` where it has some (`sectioned_text`), unless ``field`` is the field of a summary.
        reference_field: of the objects in a .jsonl file, with the summary by a person; None to read none.
        query_field: likewise, with the query, for files that end in .jsonl only.
        by_line: give the lines of a .txt file in place of its text.
        refuse: told of a document without text, and of each line that is no document, unless it is the first.
        turns: as in `read_files`. Only what is read is refused.

    Yields:
        Documents that hold text.

    Raises:
        UserError: the file is a folder or not a regular file, has another ending, is too large, or is not what its
            ending says; of a .jsonl file, the first line decides.
        OSError: the file cannot be read at all.
    """
    fields = _Fields(field, id_field, reference_field, query_field, headings, by_line)
    for document in _documents(path, fields, refuse, turns or Turns()):
        if document.holds_text:
            yield document
        else:
            refuse(UserError(f"{document.origin.name} holds no text."))


class _Fields(NamedTuple):
    """What is read of an object in a .jsonl file."""

    text: str | None
    id: str | None
    reference: str | None
    query: str | None
    headings: bool
    by_line: bool


def _documents(path: Path, fields: _Fields, refuse: Refuse, turns: Turns) -> Iterator[InputText]:
    name = printable(path)
    if holds_records(path) and path.is_file():
        yield from _json_lines(path, fields, refuse, turns)
    elif not turns.is_next():
        return
    elif path == STANDARD_INPUT:
        yield _standard_input()._replace(number=turns.number)
    elif _is_folder(path):
        raise UserError(f"{name} holds no file that ends in {', '.join(ENDINGS)}.")
    else:
        # A path that does not exist is told before one with another ending.
        path.stat()
        if file_ending(path) not in ENDINGS:
            raise UserError(f"{name} must end in {', '.join(ENDINGS)}.")
        size = regular_size(path)
        if fields.query is not None:
            raise UserError(f"{name} has no fields: --query-field is for .jsonl files.")
        lines = partial(text_lines, path) if fields.by_line and file_ending(path) == ".txt" else None
        text = file_text(path, headings=fields.headings) if lines is None else ""
        yield InputText(Origin(name, None, 1), text, size, number=turns.number, lines=lines)


def _standard_input() -> InputText:
    if sys.stdin.isatty():
        print("Reading standard input, to its end (Ctrl-D).", file=sys.stderr)
    content = at_most(sys.stdin.buffer.read, LIMITS[".txt"], "Standard input")
    return InputText(Origin("standard input", None, 1), decoded(content, "Standard input"), len(content))


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir()
    return False


def _json_lines(path: Path, fields: _Fields, refuse: Refuse, turns: Turns) -> Iterator[InputText]:
    """Yield the documents line by line; a file with an invalid first line is refused."""
    any_found, number = False, 0
    with path.open("rb") as packed:
        file, read = OPENERS[file_ending(path)](packed), 0
        while True:
            number, is_read, document = number + 1, turns.is_next(), None
            try:
                if passed := pass_blank_lines(file):
                    number += passed
                    turns.number += passed - 1
                    is_read = turns.is_next()
                place = f"{printable(path)}:{number}"
                line = _line(file, place)
                size, read = packed.tell() - read, packed.tell()
                # The first line decides for all, whoever reads it.
                if line.strip() and (is_read or not any_found):
                    document = _json_document(line, place, number, fields, size)
            except DAMAGE as error:
                if is_read:
                    refuse(UserError(f"{printable(path)} is damaged after line {number - 1} ({error})."))
                return
            except UserError as error:
                if any_found:
                    if is_read:
                        refuse(error)
                    continue
                if is_read:
                    raise
                return
            if not line:
                # A file without any line is an input all the same.
                turns.number -= number > 1
                break
            if document is not None:
                any_found = True
                if is_read:
                    yield document._replace(number=turns.number)
    if not any_found and is_read:
        raise UserError(f"{printable(path)} holds no line but blank ones.")


def _json_document(line: bytes, place: str, number: int, fields: _Fields, size: int) -> InputText:
    record = _record(line, place)
    origin = Origin(place, _id(record, place, fields.id), number)
    field = fields.text or next((name for name in TEXT_FIELDS if name in record), None)
    of_sections = None
    if fields.headings and field not in (PLAIN.target, RELEASE.target, fields.reference):
        of_sections = sectioned_text(record, place)
    text = _text(record, place, field) if of_sections is None else of_sections
    reference, query = fields.reference, fields.query
    return InputText(
        origin,
        text,
        size,
        None if reference is None else _other(record, place, reference, "a summary", "--reference-field"),
        None if query is None else _other(record, place, query, "a query", "--query-field"),
    )


def _line(file: BinaryIO, place: str) -> bytes:
    """Read a line; the rest of one that is too long is skipped."""
    try:
        return at_most(file.readline, LIMITS[".jsonl"], place)
    except UserError:
        while (rest := file.readline(MEBIBYTE)) and not rest.endswith(b"\n"):
            pass
        raise


def _record(line: bytes, place: str) -> dict[str, Any]:
    text = decoded(line, place)
    try:
        found = parse_json(text)
    except NumberError as error:
        raise UserError(f"{place} must be a JSON object with numbers that fit, but {error}.") from None
    except ValueError as error:
        raise UserError(f"{place} must be a JSON object, but {error}.") from None
    if not isinstance(found, dict):
        raise UserError(f"{place} must be a JSON object, but is {kind(found)}.")
    return found


def _text(record: dict[str, Any], place: str, field: str | None) -> str:
    if field is not None and (text := joined(record.get(field))) is not None:
        return text
    held = f"holds {', '.join(map(repr, record)) or 'nothing'}"[:200]
    found = f"{field!r} is {kind(record[field])}" if field in record else held
    names = "{!r}, {!r} or {!r}".format(*TEXT_FIELDS) if field is None else repr(field)
    raise UserError(f"{place} must be a JSON object with a text under {names} (--field), but {found}.")


def _other(record: dict[str, Any], place: str, field: str, what: str, option: str) -> str:
    if (found := joined(record.get(field))) is not None:
        return found
    raise UserError(
        f"{place} must be a JSON object with {what} under {field!r} ({option}), but "
        f"{f'it is {kind(record[field])}' if field in record else 'has none'}."
    )


def _id(record: dict[str, Any], place: str, id_field: str | None) -> str | None:
    found = record_id(record, id_field)
    if found is None and id_field is not None:
        raise UserError(f"{place} must be a JSON object with an id under {id_field!r} (--id-field), but has none.")
    # JSON may hold lone surrogates, which no output can.
    return None if found is None else found.encode("utf-8", "replace").decode()

"""Documents from the files that people have."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.documents.file_formats import LIMITS, file_ending, file_text, holds_records, may_be_paper, text_lines
from pyramidions.documents.record_fields import PLAIN, RELEASE, id_of, sectioned_text, text_of
from pyramidions.documents.records import OPENERS, JsonLine, LinesFile, Record, json_lines
from pyramidions.files.bounded import at_most, printable, real_path, regular_size, require_at_most
from pyramidions.files.lines import decoded_file
from pyramidions.text.headings import Lines
from pyramidions.text.text_windows import holds_text

ENDINGS = tuple(LIMITS)
#: The path of standard input, whose text is one document.
STANDARD_INPUT = Path("-")

#: Fields that hold the text of a record, in the order in which they are looked for; the latter two as in `prepare`.
TEXT_FIELDS = ("text", PLAIN.source, RELEASE.source)

#: Receives an error for each file, document and line that cannot be read; the others are read.
Refuse = Callable[[UserError], object]

#: Progress callback: bytes done since the last call. Each byte of a file counts twice: when its text is read and when
#: its summary is written.
Progress = Callable[[float], object]


class DocumentOrigin(NamedTuple):
    """Where a document comes from."""

    name: str  # its file, of a .jsonl file with the line
    id: str | None  # of its record, or None
    position: int  # the line of a .jsonl file, from 1; else 1


class InputText(NamedTuple):
    """A document to summarize."""

    origin: DocumentOrigin  # where it comes from
    text: str  # the whole text
    size: int  # bytes that it takes of its file
    reference: str | None = None  # its summary by a person, where a field of its record was named; else None
    query: str | None = None  # what its summary answers; None without queries
    # Its place among all inputs (files, and lines of .jsonl files), from 1. With several queries, each input counts
    # once for each of them.
    number: int = 1
    # Of a plain text of any length, in place of its text; they are read when they are asked for.
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


def list_files(given: Iterable[Path], outputs: Collection[Path | None] = ()) -> Files:
    """Return files and, in place of each folder, the files inside that `read_files` reads.

    Hidden files and folders inside, whose names begin with a dot, are passed over, and so are ``outputs``, which an
    earlier run may have left there. A folder without files that are read stays in the list; `read_files` refuses it.
    Without any path, standard input is the only file.
    """
    files = Files([], [])
    ours = {real_path(path) for path in outputs if path is not None}
    for path in given:
        inside = _inside(path, files.skipped) if _is_folder(path) else []
        inside = [file for file in inside if real_path(file) not in ours] if ours else inside
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
    return file_ending(path) in ENDINGS and path.is_file() and may_be_paper(path)


class Fields(NamedTuple):
    """What is read of files, and of the objects in .jsonl files."""

    # Field with the text or a list of sentences; if None, the first of `TEXT_FIELDS` that an object has.
    text: str | None = None
    id: str | None = None  # field with the id; if None, the field that `prepare` takes, where an object has it
    reference: str | None = None  # field with the summary by a person; None to read none
    query: str | None = None  # likewise, with the query, for files that end in .jsonl only
    # The text of an object is that of its `sections` where it has some (`sectioned_text`), unless ``text`` is the field
    # of a summary.
    sections: bool = False
    by_line: bool = False  # give the lines of a plain text in place of the text


class Input(NamedTuple):
    """A file, or a line of a .jsonl file, that is not parsed yet."""

    path: Path  # of the file
    size: int = 0  # bytes that it takes
    number: int = 0  # its place among all inputs, from 1
    line: JsonLine | None = None  # of the file; None for a whole file
    error: str | None = None  # why the file cannot be read; None if it can

    @property
    def name(self) -> str:
        """The file, and the line."""
        return printable(self.path) if self.line is None else f"{printable(self.path)}:{self.line.number}"


def list_inputs(paths: Iterable[Path], fields: Fields) -> Iterator[Input]:
    """Yield what `read_inputs` reads: files, and in place of each .jsonl file its lines that are not blank.

    Of a .jsonl file, the first line decides: where that is no document, the file is one input with an error.
    """
    found = chain.from_iterable(_inputs(path, fields) for path in paths)
    return (each._replace(number=number) for number, each in enumerate(found, 1))


def read_inputs(inputs: Iterable[Input], fields: Fields, refuse: Refuse) -> Iterator[InputText]:
    """Yield the documents of inputs; some may not be readable, and none is held."""
    # Nothing here holds a document that the caller is done with.
    return filter(None, map(partial(_read, fields=fields, refuse=refuse), inputs))


def _read(found: Input, fields: Fields, refuse: Refuse) -> InputText | None:
    try:
        document = _document(found, fields)
        if document.holds_text:
            return document
        raise UserError(f"{document.origin.name} holds no text.")
    except UserError as error:
        refuse(error)
    except OSError as error:
        refuse(UserError(f"{found.path}: {error.strerror}."))
    return None


def read_file(path: Path, fields: Fields | None = None) -> InputText:
    """Return the one document of a file of any format except records; - is standard input."""
    (document,) = read_files([path], fields or Fields())
    return document


def raised(error: UserError) -> None:
    """Raise an error: the `Refuse` of those who refuse all at the first one."""
    raise error


def read_files(paths: Iterable[Path], fields: Fields, refuse: Refuse = raised) -> Iterator[InputText]:
    """Yield the documents of several files, as `read_inputs` does."""
    return read_inputs(list_inputs(paths, fields), fields, refuse)


def _inputs(path: Path, fields: Fields) -> Iterator[Input]:
    is_file = os.path.isfile(path)  # noqa: PTH113, never raises
    if not (is_file and holds_records(path)):
        yield Input(path, path.stat().st_size if is_file else 0)
        return
    try:
        yield from _lines(path, fields)
    except OSError as error:
        yield Input(path, error=f"{path}: {error.strerror}.")


def _lines(path: Path, fields: Fields) -> Iterator[Input]:
    any_found, read = False, 0
    file = LinesFile(printable(path), 0, partial(path.open, "rb"), OPENERS[file_ending(path)])
    for line in json_lines(file, lambda number: f"{file.name}:{number}"):
        found = Input(path, line.read - read, line=line)
        read = line.read
        if not any_found:
            try:
                _json_document(found, line, fields, again=True)
            except UserError as error:
                line.error = error
                yield found
                return
        any_found = True
        yield found
    if not any_found:
        yield Input(path, error=f"{printable(path)} holds no line but blank ones.")


def _document(found: Input, fields: Fields) -> InputText:
    path, name = found.path, found.name
    if found.error is not None:
        raise UserError(found.error)
    if found.line is not None:
        return _json_document(found, found.line, fields)
    if path == STANDARD_INPUT:
        _refuse_query(fields, "Standard input")
        return _standard_input(fields)._replace(number=found.number)
    if _is_folder(path):
        raise UserError(f"{name} holds no file that ends in {', '.join(ENDINGS)}.")
    # Report a missing path before an unknown ending.
    try:
        path.stat()
    except ValueError:
        raise UserError(f"No file can be called {name!r}.") from None
    if not file_ending(path):
        raise UserError(f"{name} must end in {', '.join(ENDINGS)}.")
    size = regular_size(path)
    _refuse_query(fields, name)
    origin = DocumentOrigin(name, None, 1)
    if fields.by_line and file_ending(path) == ".txt":
        require_at_most(LIMITS[".txt"], size, name)
        return InputText(origin, "", size, number=found.number, lines=lambda: text_lines(path.open("rb"), name))
    return InputText(origin, file_text(path), size, number=found.number)


def _refuse_query(fields: Fields, name: str) -> None:
    if fields.query is not None:
        raise UserError(f"{name} has no fields: --query-field is for .jsonl files.")


def _standard_input(fields: Fields) -> InputText:
    if sys.stdin.isatty():
        print("Reading standard input, to its end (Ctrl-D).", file=sys.stderr)
    name = "Standard input"
    content = at_most(sys.stdin.buffer.read, LIMITS[".txt"], name)
    lines = (lambda: text_lines(BytesIO(content), name)) if fields.by_line else None
    text = "" if lines else decoded_file(content, name)
    return InputText(DocumentOrigin(name.lower(), None, 1), text, len(content), lines=lines)


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir()
    return False


def _json_document(found: Input, line: JsonLine, fields: Fields, *, again: bool = False) -> InputText:
    place = found.name
    record = Record(line.parsed(place, again=again), line.number, place, 0)
    name = id_of(record, fields.id)
    origin = DocumentOrigin(place, None if name is None else _encodable(name), record.number)
    field = fields.text or next((name for name in TEXT_FIELDS if name in record.value), TEXT_FIELDS[0])
    text: str | None = None
    if fields.sections and field not in (PLAIN.target, RELEASE.target, fields.reference):
        text = sectioned_text(record.value, place)
    return InputText(
        origin,
        text_of(record, field, "--field") if text is None else text,
        found.size,
        None if fields.reference is None else _encodable(text_of(record, fields.reference, "--reference-field")),
        None if fields.query is None else _encodable(text_of(record, fields.query, "--query-field")),
        found.number,
    )


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON may hold and no output can."""
    return text.encode("utf-8", "replace").decode()

"""Raw records from JSON lines, Parquet files and Hugging Face datasets, one at a time."""

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import NumberError, parse_json
from pyramidions.files.bounded import LINE_LIMIT, MEBIBYTE, at_most, regular_size, require_at_most
from pyramidions.files.lines import decoded

#: How bytes are unpacked, by the ending of a file's name.
UNPACK: dict[str, Callable[[BinaryIO], Any]] = {
    "": lambda raw: raw,
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".xz": lzma.LZMAFile,
}
#: How files of JSON lines are unpacked; those of the arXiv and PubMed release end in .txt.
OPENERS = {f"{kind}{ending}": unpack for kind in (".jsonl", ".txt") for ending, unpack in UNPACK.items()}
FILE_ENDINGS = (*OPENERS, ".parquet")
# The contents of a folder of files, for errors.
EXPECTED_FILES = (
    f"files named train, val or valid, and test, each ending in one of {', '.join(FILE_ENDINGS)}, "
    "papers in JATS, TEI or LaTeX (.xml, .nxml, .tex, .tar.gz), or a Hugging Face dataset"
)
#: The names that Hugging Face datasets give to splits.
HUGGING_FACE_SPLITS = {"train": "train", "valid": "validation", "test": "test"}

#: What reading a damaged file raises.
DAMAGE = (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile)


class Record(NamedTuple):
    """A raw record, where it stands, and how far into its input that is, in the input's own unit."""

    value: Any
    number: int
    place: str
    progress: int


class Records(NamedTuple):
    """An input: its size, the unit of that (`B` or `rows`), and what reads it from its beginning."""

    size: int
    unit: str
    read: Callable[[], Iterator[Record]]


class LinesFile(NamedTuple):
    """A file of JSON lines, on its own or in an archive."""

    name: str  # for errors
    size: int  # in bytes, as they lie there
    open: Callable[[], Any]  # returns its bytes as they lie there; its `tell` says how many were read
    unpack: Callable[[Any], Any]  # returns the lines of what `open` returned


def open_lines(files: Sequence[LinesFile]) -> Records:
    """Look at JSON lines in several files, which are read as if they were one."""
    return Records(sum(file.size for file in files), "B", partial(_read_files, files))


def open_records(name: str, split: str, config: str | None = None) -> Records:
    """Look at an input without reading it.

    It is a path that ends in one of `FILE_ENDINGS`, or a split (train, valid or test) of a Hugging Face dataset by its
    name or folder. It may turn out to be damaged while it is read.
    """
    path = Path(name)
    if (ending := known_ending(path, FILE_ENDINGS)) in OPENERS:
        return open_lines([LinesFile(str(path), file_size(path), partial(path.open, "rb"), OPENERS[ending])])
    if ending:
        file_size(path)
        return _open_parquet(path)
    if path.is_file():
        raise UserError(f"The name of {path} must end in one of {', '.join(FILE_ENDINGS)}.")
    return _open_hugging_face(name, split, config)


def known_ending(path: Path, endings: Iterable[str]) -> str:
    """Return the longest of some endings that a name has, in upper or lower case; "" if it has none."""
    name = path.name.lower()
    return max((each for each in endings if name.removesuffix(each) not in ("", name)), key=len, default="")


def file_size(path: Path) -> int:
    """Return the size of a file in bytes."""
    try:
        return regular_size(path)
    except FileNotFoundError:
        raise UserError(f"The file {path} does not exist.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


def _read_files(files: Sequence[LinesFile]) -> Iterator[Record]:
    lines = size = 0
    for file in files:
        number = 0
        for record in _read_json_lines(file):
            number = record.number
            yield record._replace(number=lines + number, progress=size + record.progress)
        lines, size = lines + number, size + file.size


def pass_blank_lines(lines: Any) -> int:
    """Read the lines of white space that come next in a buffered file; return how many. A small file may have many."""
    passed = 0
    while ahead := lines.peek(1):
        blank = ahead[: len(ahead) - len(ahead.lstrip())]
        if not (end := blank.rfind(b"\n") + 1):
            break
        passed += lines.read(end).count(b"\n")
    return passed


@dataclass
class JsonLine:
    """A line that is not blank."""

    number: int  # in its file, from 1
    read: int  # bytes of the file, as it lies there, that have been read so far
    content: bytes = b""  # empty where there is an error, and once it is parsed
    error: UserError | None = None  # why reading failed, None if it did not; after damage this is the last line
    _value: dict[str, Any] | None = None

    def parsed(self, place: str, *, again: bool = False) -> dict[str, Any]:
        """Return the object, as `parse_record` does; it is kept only if it is asked for again."""
        if self.error is not None:
            raise self.error
        content, self.content = self.content, b""
        value, self._value = self._value, None
        if value is None:
            # Nobody holds the bytes while they are parsed.
            held = [content]
            del content
            value = parse_record(held.pop(), place)
        if again:
            self._value = value
        return value


def json_lines(file: LinesFile, named: Callable[[int], str]) -> Iterator[JsonLine]:
    """Yield the lines of a file, those that are too long among them, up to where it is damaged.

    Given its number, ``named`` returns what an error calls a line.
    """
    number = 0
    with file.open() as raw:
        lines = file.unpack(raw)
        while True:
            try:
                number += pass_blank_lines(lines)
                line, error = _line(lines, named(number + 1))
            except DAMAGE as damage:
                error = UserError(f"{file.name} is damaged after line {number} ({damage}).")
                yield JsonLine(number, raw.tell(), error=error)
                return
            if not line and error is None:
                return
            number += 1
            if error is not None or line.strip():
                found = JsonLine(number, raw.tell(), line, error)
                line = b""
                yield found


def _line(lines: Any, name: str) -> tuple[bytes, UserError | None]:
    """Read a line; the rest of one that is too long is passed over."""
    try:
        # A few compressed bytes may unpack to a line of any length.
        return at_most(lines.readline, LINE_LIMIT, name), None
    except UserError as error:
        while (rest := lines.readline(MEBIBYTE)) and not rest.endswith(b"\n"):
            pass
        return b"", error


def _read_json_lines(file: LinesFile) -> Iterator[Record]:
    def named(number: int) -> str:
        return f"{file.name}, line {number}"

    for line in json_lines(file, named):
        place = named(line.number)
        yield Record(line.parsed(place), line.number, place, line.read)


def parse_record(line: bytes, place: str) -> dict[str, Any]:
    """Read a JSON object."""
    # Some editors put a byte-order mark in front.
    text = decoded(line, place).removeprefix("\ufeff")
    del line
    try:
        found = parse_json(text)
    except NumberError as error:
        raise UserError(f"{place}: must be a JSON object with numbers that fit, but {error}.") from None
    except ValueError as error:
        raise UserError(f"{place}: must be a JSON object, but {error}.") from None
    if not isinstance(found, dict):
        raise UserError(f"{place}: must be a JSON object, but is {kind(found)}.")
    return found


def kind(value: object) -> str:
    """Return the kind of a JSON value in words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _open_parquet(path: Path) -> Records:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UserError(f"{path} is not a Parquet file ({str(error).splitlines()[0]}).") from None

    def rows() -> Iterator[Record]:
        number = 0
        try:
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(_rows_at_once(file, group, path), [group]):
                    for value in batch.to_pylist():
                        number += 1
                        yield Record(value, number, f"{path}, row {number}", number)
        except (pyarrow.ArrowException, OSError) as error:
            raise UserError(f"{path} is damaged after row {number} ({str(error).splitlines()[0]}).") from None

    return Records(file.metadata.num_rows, "rows", rows)


def _rows_at_once(file: Any, group: int, path: Path) -> int:
    """Return how many rows of a group to read at a time, so that their cells hold a small multiple of the limit.

    The size of a cell is not known, but is at most that of its column in the group.
    """
    metadata = file.metadata.row_group(group)
    largest = max((metadata.column(i).total_uncompressed_size for i in range(metadata.num_columns)), default=0)
    require_at_most(LINE_LIMIT, largest // max(metadata.num_rows, 1), f"{path}, row group {group + 1}, by row,")
    return min(64, max(1, LINE_LIMIT * MEBIBYTE // max(largest, 1)))


def hugging_face_splits(name: str, config: str | None = None) -> list[str]:
    """Return which of `train`, `valid` and `test` a Hugging Face dataset has; all if it does not list its splits."""
    import datasets

    _require_dataset(name)
    try:
        found = list(_saved(name) or datasets.get_dataset_split_names(name, config))
    except Exception:
        # Reading the documents says what is wrong.
        found = list(HUGGING_FACE_SPLITS.values())
    return [split for split, theirs in HUGGING_FACE_SPLITS.items() if theirs in found]


def load_dataset(name: str, config: str | None, split: str, **options: Any) -> Any:
    """Return a split of a Hugging Face dataset, by the name that the dataset has for it."""
    import datasets

    saved = _saved(name)
    return datasets.load_dataset(name, config, split=split, **options) if saved is None else saved[split]


def reason_of(error: Exception) -> str:
    """Return an error of `datasets` on one line. It raises a dozen kinds, including those of its network library."""
    return " ".join(str(error).split()) or type(error).__name__


def _saved(name: str) -> Any:
    """Return the splits of a dataset that was saved to disk; None for another one."""
    import datasets

    return datasets.load_from_disk(name) if (Path(name) / "dataset_dict.json").exists() else None


def _require_dataset(name: str) -> None:
    if not Path(name).is_dir() and (name.startswith((".", "/")) or name.count("/") != 1):
        raise UserError(f"{name} is neither a file, nor a folder, nor the name of a Hugging Face dataset.")


def _open_hugging_face(name: str, split: str, config: str | None) -> Records:
    split = HUGGING_FACE_SPLITS[split]
    _require_dataset(name)
    try:
        data = load_dataset(name, config, split)
    except KeyError:
        raise UserError(f"The dataset {name} has no split {split!r}.") from None
    except Exception as error:
        reason = reason_of(error)
        if Path(name).is_dir():
            raise UserError(f"The folder {name} must hold {EXPECTED_FILES}, split {split!r} too: {reason}") from None
        raise UserError(f"The dataset {name}, split {split!r}, cannot be loaded: {reason}") from None
    return _of_dataset(data, f"{name}, split {split!r}")


def open_tables(paths: Sequence[str]) -> Records:
    """Look at tables of one split, all in Parquet or all in CSV, as Hugging Face datasets reads them."""
    kind = "csv" if paths[0].endswith(".csv") else "parquet"
    try:
        data = load_dataset(kind, None, "train", data_files=list(paths))
    except Exception as error:
        raise UserError(f"{paths[0]} cannot be read as a table: {reason_of(error)}") from None
    return _of_dataset(data, paths[0] if len(paths) == 1 else f"{paths[0]} and the next")


def _of_dataset(data: Any, name: str) -> Records:
    def rows() -> Iterator[Record]:
        for number, value in enumerate(data, 1):
            yield Record(value, number, f"{name}, row {number}", number)

    return Records(len(data), "rows", rows)

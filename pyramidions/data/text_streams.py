"""Streams of text without document boundaries: files as they stand, and texts of records."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.documents.record_fields import text_of
from pyramidions.documents.records import (
    DAMAGE,
    UNPACK,
    Record,
    file_size,
    known_ending,
    load_dataset,
    open_records,
    reason_of,
)
from pyramidions.files.lines import decoded

#: Endings of files whose records are read; all other files are plain text.
RECORD_FILES = (*(f".jsonl{ending}" for ending in UNPACK), ".parquet")
#: The field of a record's text, unless another is named.
TEXT_FIELD = "text"
_BLOCK = 2**20  # bytes of a plain text that are read at a time


class TextStream(NamedTuple):
    """A text, in parts that are cut at white space."""

    name: str  # for errors
    # Yields the parts from the beginning, about a megabyte each; joined they are the text.
    read: Callable[[], Iterator[str]]
    # What is read elsewhere than on this machine, such as a dataset on the hub; None for files here.
    source: str | None = None


def open_text(path: Path, field: str | None = None) -> TextStream:
    """Return the text of a file: a plain one as it stands, or the texts of its records, one a line."""
    file_size(path)
    if known_ending(path, RECORD_FILES):
        return TextStream(str(path), partial(_texts, path, field or TEXT_FIELD))
    if field is not None:
        raise UserError(
            f"--source-field is for records, but {path} is plain text: its name ends in none of "
            f"{', '.join(RECORD_FILES)}."
        )
    if path.suffix == ".zip":
        raise UserError(f"{path} must be unpacked: plain text may end in {' or '.join(filter(None, UNPACK))} alone.")
    return TextStream(str(path), partial(_blocks, path))


def streamed_dataset(
    name: str, config: str | None, split: str, field: str | None = None, files: str | None = None
) -> TextStream:
    """Return the texts of a Hugging Face dataset, one a line, which are fetched as they are read."""
    source = "/".join(filter(None, [files or name, config, split]))
    place = Path(name)
    return TextStream(
        source if not place.is_dir() else f"{place}, split {split!r}",
        partial(_rows, name, config, split, field or TEXT_FIELD, files),
        None if place.is_dir() else source,
    )


def fetched_text(address: str, member: str) -> TextStream:
    """Return a plain text in an archive, which is fetched as a whole when first read, and kept in the cache."""
    return TextStream(address, partial(_fetched_blocks, address, member), address)


def _fetched_blocks(address: str, member: str) -> Iterator[str]:
    import datasets

    try:
        folder = datasets.DownloadManager().download_and_extract(address)
    except Exception as error:
        raise UserError(f"{address} cannot be fetched: {reason_of(error)}") from None
    yield from _blocks(Path(folder) / member)


def _blocks(path: Path) -> Iterator[str]:
    kept, read = b"", 0
    try:
        raw = path.open("rb")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    with raw:
        unpacked: BinaryIO = UNPACK.get(path.suffix, UNPACK[""])(raw)
        while True:
            try:
                block = unpacked.read(_BLOCK)
            except DAMAGE as error:
                raise UserError(f"{path} is damaged after byte {read + len(kept):,} of its text ({error}).") from None
            kept += block
            end = max(kept.rfind(b" "), kept.rfind(b"\n")) if block else len(kept)
            if end < 0:
                # Memory stays bounded where there is no space: the text is cut before its last character.
                end = next((at for at in range(len(kept) - 1, 0, -1) if kept[at] & 0xC0 != 0x80), 0)
            if end:
                yield decoded(kept[:end], str(path), read)
            kept, read = kept[end:], read + end
            if not block:
                return


def _texts(path: Path, field: str) -> Iterator[str]:
    return _gathered(_line(record, field) for record in open_records(str(path), "train").read())


def _rows(name: str, config: str | None, split: str, field: str, files: str | None) -> Iterator[str]:
    place = f"{files or name}, split {split!r}"
    try:
        found = load_dataset(name, config, split, data_files=files, streaming=True)
        records = (Record(value, number, f"{place}, row {number}", number) for number, value in enumerate(found, 1))
        yield from _gathered(_line(record, field) for record in records)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"The dataset {place}, cannot be read: {reason_of(error)}") from None


def _gathered(lines: Iterable[str]) -> Iterator[str]:
    """Join lines to parts."""
    begun, size = [], 0
    for line in lines:
        begun.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield "".join(begun)
            begun, size = [], 0
    if begun:
        yield "".join(begun)


def _line(record: Record, field: str) -> str:
    return text_of(record, field, "--source-field") + "\n"

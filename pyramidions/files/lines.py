"""Reads lines of UTF-8, by number too, and reports where bytes are not UTF-8."""

import codecs
from array import array
from collections.abc import Iterator
from io import BufferedReader, BytesIO
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.files.bounded import at_most

#: The most that is read of a pipe or a device, in MiB.
STREAM_LIMIT = 1024


def decoded(content: bytes, place: str, before: int = 0) -> str:
    """Decode UTF-8 of a place; an error counts bytes from the ``before`` ones of the file that stand in front."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {before + error.start + 1:,} is 0x{content[error.start]:02x}"
        raise UserError(f"{place}: must be UTF-8, but {byte}{_hint(content)}.") from None


def is_utf16(begin: bytes) -> bool:
    """Whether a file begins with the byte-order mark of UTF-16, in which Windows writes text, too."""
    return begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decoded_file(content: bytes, place: str) -> str:
    """Decode a whole file without its byte-order mark: UTF-8, or UTF-16 with one."""
    if not is_utf16(content):
        return decoded(content, place).removeprefix("\ufeff")
    try:
        return content.decode("utf-16")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{place} begins with the byte-order mark of UTF-16, but is damaged at byte {error.start + 1:,}."
        ) from None


def _hint(content: bytes) -> str:
    """Say what converts bytes that are no UTF-8, if they seem to be text."""
    name = "UTF-16" if is_utf16(content) else "WINDOWS-1252"
    # Few letters of its languages are beyond ASCII.
    known = name == "UTF-16" or (b"\0" not in content and sum(byte > 127 for byte in content) < len(content) / 3)
    return f" (if it is {name}, `iconv -f {name} -t UTF-8` converts it)" * known


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file, as `IndexedLines` has them."""
    lines = IndexedLines(path)
    with lines.file:
        return list(lines)


def _opened(path: Path) -> BytesIO | BufferedReader:
    """Open a file, or what a pipe or a device gives."""
    try:
        opened = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"The file {path} does not exist.") from None
    except IsADirectoryError:
        raise UserError(f"{path} must be a file, but is a folder.") from None
    # A file is as large as its disk allows; a device may have no end.
    if path.is_file():
        return opened
    with opened:
        return BytesIO(at_most(opened.read, STREAM_LIMIT, str(path)))


class IndexedLines:
    """The lines of a text file; only a line feed ends a line, and a final one begins no further line.

    Memory: eight bytes a line. A pipe or a device, which cannot be read twice, is held in memory.
    """

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = _opened(path)
        self._begins = array("Q")
        begin = 0
        for line in self.file:
            self._begins.append(begin)
            begin += len(line)

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, index: int) -> str:
        """Return a line without its line feed, counted from 0."""
        self.file.seek(self._begins[index])
        return decoded(self.file.readline().removesuffix(b"\n"), self.place(index))

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def place(self, index: int) -> str:
        """Return file and line, for an error."""
        return f"{self.path}, {self.unit} {index + 1}"

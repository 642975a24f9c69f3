"""The lines of a file by number, without their text in memory."""

from array import array
from collections.abc import Iterator
from io import BufferedReader, BytesIO
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.files.bounded import at_most
from pyramidions.files.lines import STREAM_LIMIT, decode_line


class IndexedLines:
    """The lines of a text file; only a line feed ends a line, and a final one begins no further line.

    Memory: eight bytes a line. A pipe or a device, which cannot be read twice, is held in memory.

    Args:
        path: the file. It must not change while it is read.

    Raises:
        UserError: there is no such file; or a pipe or device gives more than `STREAM_LIMIT`.
    """

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            opened = path.open("rb")
        except FileNotFoundError:
            raise UserError(f"The file {path} does not exist.") from None
        except IsADirectoryError:
            raise UserError(f"{path} must be a file, but is a folder.") from None
        if not path.is_file():
            with opened:
                self._file: BytesIO | BufferedReader = BytesIO(at_most(opened.read, STREAM_LIMIT, str(path)))
        else:
            self._file = opened
        self._begins = array("Q")
        begin = 0
        for line in self._file:
            self._begins.append(begin)
            begin += len(line)

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, index: int) -> str:
        """Return a line without its line feed, counted from 0.

        Raises:
            UserError: it is not UTF-8.
            IndexError: there is no such line.
        """
        self._file.seek(self._begins[index])
        return decode_line(self._file.readline().removesuffix(b"\n"), self.place(index))

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def place(self, index: int) -> str:
        """Return file and line, for an error."""
        return f"{self.path}, {self.unit} {index + 1}"

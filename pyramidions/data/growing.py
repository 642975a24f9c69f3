"""Files that grow at their end, and go on growing after the process that wrote them was killed."""

import zlib
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from pyramidions.data.atomic import sync

_BLOCK = 2**20


class Extent(NamedTuple):
    """The first bytes of a file: how many, and their CRC-32, which goes on from any byte without the ones before."""

    size: int
    crc: int

    def and_then(self, data: bytes) -> "Extent":
        """These bytes with more behind them."""
        return Extent(self.size + len(data), zlib.crc32(data, self.crc))

    def begins(self, path: Path) -> bool:
        """Whether a file begins with these bytes; a file that is missing does not."""
        if not path.is_file():
            return False
        found = NOTHING
        with path.open("rb") as file:
            while block := file.read(min(_BLOCK, self.size - found.size)):
                found = found.and_then(block)
        return found == self


NOTHING = Extent(0, 0)


class GrowingFile:
    """Appends to a file behind a part of it that is good; what stands behind that part is cut off.

    Args:
        path: the file; made anew where nothing of it is good.
        extent: the good part, which the file must begin with.
    """

    def __init__(self, path: Path, extent: Extent = NOTHING) -> None:
        self.extent = extent
        self._file = path.open("r+b" if extent.size else "wb")
        self._file.truncate(extent.size)
        self._file.seek(extent.size)

    def write(self, data: bytes) -> None:
        """Append some bytes."""
        self._file.write(data)
        self.extent = self.extent.and_then(data)

    def sync(self) -> None:
        """Bring everything up to `extent` to the disk itself."""
        sync(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self.sync()

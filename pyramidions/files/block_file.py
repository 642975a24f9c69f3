"""Files of numbered blocks of lines, which a killed run goes on with.

The first line says what the file is about. Then comes each block: a line with its number, its lines, its bytes and
their SHA-256, and the lines themselves. A last line says that the file is whole. All but the blocks' lines are JSON.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pyramidions.errors import UserError
from pyramidions.files.atomic import sync, sync_folder
from pyramidions.files.bounded import MEBIBYTE

FORMAT = 1
_KIND = "pyramidions_blocks"
_LONGEST = MEBIBYTE  # bytes of a line that is no block's


class Block(NamedTuple):
    """Some lines, in bytes, each with its line feed."""

    number: int
    lines: list[bytes]


class _DamagedError(Exception):
    """What comes next is not whole."""


class BlockWriter:
    """Appends blocks to a file, each on the disk before the next.

    Attributes:
        last: number of the last block; 0 for none.
        lines: of all blocks.
        failed: whether a run noted that it could not read something.
    """

    def __init__(self, file: BinaryIO, last: int, lines: int, failed: bool) -> None:
        self.last = last
        self.lines = lines
        self.failed = failed
        self._file = file

    def write(self, number: int, lines: Sequence[str], failed: bool) -> None:
        """Append a block.

        Args:
            number: above the last one.
            lines: without their ends.
            failed: something could not be read until now.
        """
        content = "".join(f"{line}\n" for line in lines).encode()
        self.failed = self.failed or failed
        about = {"block": number, "lines": len(lines), "bytes": len(content), "sha256": _hash(content)}
        self._file.write(_line({**about, "failed": self.failed}) + content)
        sync(self._file)
        self.last = number
        self.lines += len(lines)

    def finish(self, inputs: int, failed: bool) -> None:
        """Say that the file is whole.

        Args:
            inputs: how many there are in all.
            failed: something could not be read.
        """
        self.failed = self.failed or failed
        self._file.write(_line({"end": True, "inputs": inputs, "failed": self.failed}))
        sync(self._file)


@contextmanager
def block_writer(partial: Path, path: Path, about: Mapping[str, Any]) -> Iterator[BlockWriter]:
    """Open a file of blocks, behind the last whole one that a killed run left.

    Args:
        partial: the file while it is written; it stays there where the block ends with an error.
        path: the file when it is whole.
        about: what the file is about; a file that a run left must be about the same, which `read_about` tells.

    Raises:
        UserError: another process writes it.
        OSError: it cannot be written.
    """
    partial.touch()
    with partial.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"Another process is writing {partial} at this moment.") from None
        except OSError:
            pass  # a network disk without locks
        # It may have been finished, and renamed, between these two calls, or before the first.
        if not partial.exists() or os.fstat(file.fileno()).st_ino != partial.stat().st_ino:
            raise UserError(f"Another process finished {path} at this moment.")
        if path.exists():
            partial.unlink()
            raise UserError(f"Another process finished {path} at this moment.")
        last, lines, failed, end = 0, 0, False, 0
        with suppress(_DamagedError):
            _about(file)
            end = file.tell()
            while (block := _next_block(file)) is not None and not isinstance(block, _End):
                last, failed, end = block[0].number, block[1], file.tell()
                lines += len(block[0].lines)
        file.seek(end)
        file.truncate()
        if not end:
            file.write(_line({_KIND: FORMAT, **about}))
            sync(file)
        yield BlockWriter(file, last, lines, failed)
        partial.replace(path)
    sync_folder(path.parent)


def forget_partial(partial: Path) -> None:
    """Remove what a second process left beside a whole file, unless it still writes.

    Args:
        partial: the file while it is written.
    """
    with suppress(FileNotFoundError), partial.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        partial.unlink()


def read_about(path: Path) -> dict[str, Any] | None:
    """Return what a file of blocks is about; None if a run was killed before it said so.

    Raises:
        UserError: it is no such file.
    """
    with path.open("rb") as file:
        try:
            return _about(file)
        except _DamagedError:
            file.seek(0)
            if file.readline(_LONGEST).endswith(b"\n"):
                raise UserError(f"{path} must be a shard that --shard wrote, but is none.") from None
            return None


class BlockReader:
    """Reads a whole file of blocks, one at a time.

    Args:
        path: the file.

    Attributes:
        about: what it is about.
        end: what its last line says, once all blocks are read: `inputs` and `failed`.

    Raises:
        UserError: it is no such file.
    """

    def __init__(self, path: Path) -> None:
        found = read_about(path)
        if found is None:
            raise UserError(f"{path} must be a shard that --shard wrote, but is none.")
        self.path, self.about = path, found
        self.end: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks, by rising numbers.

        Raises:
            UserError: the file is damaged, or ends before it is whole.
        """
        last = 0
        with self.path.open("rb") as file:
            place = 0
            try:
                _about(file)
                while True:
                    place = file.tell()
                    found = _next_block(file)
                    if found is None:
                        raise _DamagedError
                    if isinstance(found, _End):
                        break
                    block, _ = found
                    if block.number <= last:
                        raise _DamagedError
                    last = block.number
                    yield block
                if file.read(1):
                    raise _DamagedError
            except _DamagedError:
                raise UserError(
                    f"{self.path} is damaged at byte {place:,}: remove it, and run its shard again."
                ) from None
        self.end = found.about


class _End(NamedTuple):
    """What the last line says."""

    about: dict[str, Any]


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_line(file: BinaryIO) -> dict[str, Any] | None:
    """Return a line of JSON; None at the end of the file."""
    line = file.readline(_LONGEST)
    if not line:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise _DamagedError from None
    if not line.endswith(b"\n") or not isinstance(found, dict):
        raise _DamagedError
    return found


def _about(file: BinaryIO) -> dict[str, Any]:
    found = _read_line(file)
    if found is None or found.pop(_KIND, None) != FORMAT:
        raise _DamagedError
    return found


def _next_block(file: BinaryIO) -> tuple[Block, bool] | _End | None:
    """Return a block and whether something failed before it; or the end; or None where the file ends too early."""
    about = _read_line(file)
    if about is None:
        return None
    if about.get("end") is True and isinstance(about.get("inputs"), int):
        return _End(about)
    number, lines, size = about.get("block"), about.get("lines"), about.get("bytes")
    if not (isinstance(number, int) and isinstance(lines, int) and isinstance(size, int)):
        raise _DamagedError
    # What is left of the file bounds what is read, whatever a damaged line says.
    if not 0 <= size <= os.fstat(file.fileno()).st_size - file.tell():
        raise _DamagedError
    content = file.read(size)
    found = [line + b"\n" for line in content.split(b"\n")[:-1]]
    if _hash(content) != about.get("sha256") or len(found) != lines:
        raise _DamagedError
    return Block(number, found), about.get("failed") is True

"""Bounded reads: regular files only, and no more bytes than a limit."""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

from pyramidions.base.errors import UserError

MEBIBYTE = 2**20
#: The longest line of JSON that is read, in MiB; it is held in memory several times.
LINE_LIMIT = 128
#: What a document that is an archive may unpack to, in MiB and beside that as a multiple of its size.
UNPACKED, UNPACKED_RATIO = 16, 32

# What Python makes of bytes that are not UTF-8, and what no file's name holds.
_UNDECODED = re.compile("[\ud800-\udfff]")
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def regular_size(path: Path) -> int:
    """Return the size of a regular file in bytes; it is not opened, since a pipe waits and a device may have no end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise UserError(f"{printable(path)} must be a regular file, but is {kind}.")
    return found.st_size


def read_regular(path: Path) -> bytes:
    """Read a regular file; raise an OSError for anything else: a pipe would wait for its writer."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it must be a regular file", str(path))
    return path.read_bytes()


def require_at_most(limit: int, size: int, name: str) -> None:
    """Refuse a size in bytes above a limit in MiB."""
    if size > limit * MEBIBYTE:
        raise UserError(f"{name} must hold at most {limit} MiB, but holds {size / MEBIBYTE:,.1f}.")


def require_unpacked(archive: ZipFile, size: int, name: str) -> None:
    """Refuse an archive of some bytes that unpacks to more than `UNPACKED_RATIO` times as many, and `UNPACKED` MiB."""
    unpacked, most = sum(part.file_size for part in archive.infolist()) // MEBIBYTE, UNPACKED_RATIO * size // MEBIBYTE
    if unpacked > UNPACKED + most:
        raise UserError(f"{name} must unpack to at most {UNPACKED + most:,} MiB, for its size, but has {unpacked:,}.")


def at_most(read: Callable[[int], bytes], limit: int, name: str) -> bytes:
    """Read at most so many MiB by a file's `read` or `readline`; a UserError names what holds more."""
    # One more byte shows that there is too much.
    content = read(limit * MEBIBYTE + 1)
    if len(content) > limit * MEBIBYTE:
        raise UserError(f"{name} must hold at most {limit} MiB, but holds more.")
    return content


def real_path(path: str | Path) -> Path:
    """Follow the links of a path. `Path.resolve` raises where one leads back to itself; this keeps it."""
    return Path(os.path.realpath(path))


def printable(path: Path) -> str:
    """Return a path as text; bytes that are not UTF-8 are replaced."""
    return _UNDECODED.sub("\ufffd", str(path))


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Files and folders that appear whole or not at all."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pyramidions.errors import UserError


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` only when the block ends without an error.

    Args:
        path: where the file shall stand; its folder must exist.

    Yields:
        A binary file beside `path`. After an error it is gone and `path` is as it was.

    Raises:
        OSError: it cannot be written; `filename` is `path`, since nobody asked for the file beside it.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("wb") as file:
            yield file
            sync(file)
        partial.replace(path)
    except OSError as error:
        if error.filename in (None, str(partial)):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        partial.unlink(missing_ok=True)
    _sync_folder(path.parent)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Make a folder that takes the place of `path` only when the block ends without an error.

    The block fills a hidden folder beside `path` and syncs what it writes. An error removes it; what a killed
    run left is removed by the next one, which also puts back a folder that was about to be replaced.

    Args:
        path: where the folder shall stand; a folder that is there already is replaced.

    Yields:
        The empty hidden folder.

    Raises:
        UserError: another process is filling it.
    """
    path = Path(path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked_partial(path) as partial:
        _restore(path)
        yield partial
        _sync_folder(partial)
        _replace_folder(partial, path)


def sync(file: BinaryIO) -> None:
    """Bring what was written to an open file to the disk itself."""
    file.flush()
    os.fsync(file.fileno())


def recover_folder(path: str | Path) -> None:
    """Put back the folder that a run killed in mid-replacement had moved aside, or remove it if replaced."""
    path = Path(path).absolute()
    if _aside(path).exists():
        with _locked_partial(path):
            _restore(path)


@contextmanager
def _locked_partial(path: Path) -> Iterator[Path]:
    """The empty folder in which `path` is made, held by this process alone and removed in the end."""
    partial = path.with_name(f".{path.name}.partial")
    partial.mkdir(exist_ok=True)
    lock = os.open(partial, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"Another process is writing {path} at this moment.") from None
        try:
            _empty(partial)
            yield partial
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    finally:
        os.close(lock)


def _restore(path: Path) -> None:
    replaced = _aside(path)
    if path.exists():
        shutil.rmtree(replaced, ignore_errors=True)
    elif replaced.exists():
        replaced.rename(path)


def _replace_folder(new: Path, path: Path) -> None:
    replaced = _aside(path)
    if path.exists():
        path.rename(replaced)
    new.rename(path)
    _sync_folder(path.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


def _empty(folder: Path) -> None:
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

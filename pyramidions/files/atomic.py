"""Files and folders that appear whole or not at all."""

import fcntl
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import BinaryIO, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.files.bounded import real_path
from pyramidions.files.parallel import KilledError

_KEY = ".key"
_OWNER = ".owner"
# Several machines may share a disk, and only the writer's own knows whether the writer is still running.
_HOST = re.sub(r"[^\w.-]", "_", socket.gethostname())
_LEFT = re.compile(rf"\..+\.partial-{re.escape(_HOST)}-[0-9a-f]{{8}}")
_locks: set[int] = set()
# By device and inode: a process may hold the same folder twice.
_held: dict[tuple[int, int], int] = {}


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a binary file for writing that takes the place of `path` only when the block ends without an error.

    The target of a symbolic link is replaced, and the link stays. Pipes and devices such as `/dev/null` are written
    directly. Partial files that killed processes of this machine left in the folder are removed. Inside
    `written_together` the file appears with the others. Errors of the system name `path`, which the user knows.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with named_by(path), path.open("wb") as device:
            yield device
        return
    if path.is_symlink():
        # What it names may be missing, but a link that leads back to itself names nothing.
        with suppress(FileNotFoundError):
            path.stat()
    target = real_path(path) if path.is_symlink() else path
    remove_leftovers(target.parent)
    partial = target.with_name(f".{target.name}.partial-{_HOST}-{secrets.token_hex(4)}")
    others = _together.get()
    with _group() if others is None else nullcontext(others) as group:
        with named_by(path, partial):
            file = _new_file(partial)
            group.opened.callback(_close, file)
            group.opened.callback(partial.unlink, missing_ok=True)
            yield file
            sync(file)
        group.whole.append((partial, target, path))


def _close(file: BinaryIO) -> None:
    # Closing writes what is left: on a full disk it fails as the write did, whose error is already raised.
    with suppress(OSError):
        file.close()


class _Group(NamedTuple):
    """Files that appear together: those that are open, and partial file, target and the user's name of whole ones."""

    opened: ExitStack
    whole: list[tuple[Path, Path, Path]]


_together: ContextVar[_Group | None] = ContextVar("together", default=None)


@contextmanager
def _group() -> Iterator[_Group]:
    # The locks protect the partial files from `remove_leftovers` until they have their final names.
    with ExitStack() as opened:
        yield (group := _Group(opened, []))
        for partial, target, path in group.whole:
            with named_by(path, partial):
                partial.replace(target)
    for folder in {target.parent for _, target, _ in group.whole}:
        sync_folder(folder)


@contextmanager
def written_together() -> Iterator[None]:
    """Let the files of all `atomic_file` blocks inside appear at the end, when all are whole; after an error none."""
    with _group() as group:
        before = _together.set(group)
        try:
            yield
        finally:
            _together.reset(before)


@contextmanager
def named_by(path: Path, partial: Path | None = None) -> Iterator[None]:
    """Let errors of the system name the path that the user knows, in place of a partial one or of none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        elif partial is not None and str(error.filename).startswith(str(partial)):
            error.filename, error.filename2 = str(error.filename).replace(str(partial), str(path), 1), None
        raise


def write_file(path: str | Path, content: bytes) -> None:
    """Write a whole file, as `atomic_file` does."""
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_folder(path: str | Path, key: str | None = None) -> Iterator[Path]:
    """Make a folder that takes the place of `path` only when the block ends without an error.

    The block fills a partial folder beside `path`, whose name begins with a dot, and syncs what it writes. An error
    removes it. An interruption (a killed process, or an exception that is no `Exception`) leaves it to the next block
    with the same key, which says what is being made; one with another key empties it, and without a key nothing is
    left. The next block also restores a folder that was being replaced. Files whose names begin with a dot are removed
    before the folder appears.
    """
    path = Path(path).absolute()
    if os.path.lexists(path) and not path.is_dir():
        raise UserError(f"{path} must be a folder, but is a {'file' if path.exists() else 'link to nothing'}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked_partial(path) as partial:
        try:
            _restore(path)
            _take_over(partial, key)
            remove_leftovers(path.parent)
            yield partial
            for temporary in partial.glob(".*"):
                temporary.unlink()
            sync_folder(partial)
            _replace_folder(partial, path)
        except BaseException as error:
            if key is None or (isinstance(error, Exception) and not isinstance(error, KilledError)):
                shutil.rmtree(partial, ignore_errors=True)
            raise


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder, and remove those that killed processes of this machine left."""
    place = Path(gettempdir())
    remove_leftovers(place)
    made = Path(mkdtemp())
    descriptor = os.open(made, os.O_RDONLY)
    _locks.add(descriptor)
    lock(descriptor)
    # No other process may find it under this name before it is locked.
    path = made.rename(place / f".pyramidions.partial-{_HOST}-{secrets.token_hex(4)}")
    try:
        yield path
    finally:
        _locks.discard(descriptor)
        os.close(descriptor)
        shutil.rmtree(path, ignore_errors=True)


def sync(file: BinaryIO) -> None:
    """Flush an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def remove_leftovers(folder: Path) -> None:
    """Remove the partial files and folders of killed processes of this machine.

    A process holds a lock on what it writes, which ends with it.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _LEFT.fullmatch(entry.name) or _is_left_folder(entry):
                with suppress(OSError), _locked(Path(entry.path)):
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, ignore_errors=True)
                    else:
                        Path(entry.path).unlink()


def hold_folder(folder: Path) -> None:
    """Lock a folder for the life of this process, without its child processes; errors are those of `lock`."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    stat = os.fstat(descriptor)
    key = stat.st_dev, stat.st_ino
    try:
        if key not in _held:
            lock(descriptor)
            _held[key] = descriptor
    finally:
        if _held.get(key) != descriptor:
            os.close(descriptor)


def lock(file: int | BinaryIO) -> None:
    """Lock an open file or folder; some network disks have no locks. BlockingIOError where another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass


def _is_left_folder(entry: "os.DirEntry[str]") -> bool:
    if not (entry.name.startswith(".") and entry.name.endswith(".partial") and entry.is_dir(follow_symlinks=False)):
        return False
    owner = Path(entry.path) / _OWNER
    return owner.is_file() and owner.read_text() == _HOST


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder; BlockingIOError where another process does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _new_file(path: Path) -> BinaryIO:
    """Open a new file and lock it."""
    while True:
        file = path.open("xb")
        # Some network disks have no locks; nothing is removed there.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        # Another process removed it before it was locked.
        file.close()


def recover_folder(path: str | Path) -> None:
    """Finish a replacement that a kill interrupted: restore the old folder, or remove it if the new one is there."""
    path = Path(path).absolute()
    if _aside(path).exists():
        with _locked_partial(path) as partial:
            _restore(path)
            # It stays if an interrupted run left something in it.
            with suppress(OSError):
                partial.rmdir()


@contextmanager
def _locked_partial(path: Path) -> Iterator[Path]:
    """The folder in which `path` is made, held by this process alone."""
    partial = path.with_name(f".{path.name}.partial")
    with named_by(path, partial):
        partial.mkdir(exist_ok=True)
    descriptor = os.open(partial, os.O_RDONLY)
    _locks.add(descriptor)
    try:
        try:
            lock(descriptor)
            if not os.fstat(descriptor).st_nlink:
                raise BlockingIOError  # another process removed it before it was locked
        except BlockingIOError:
            raise UserError(f"Another process is writing {path} at this moment.") from None
        with named_by(path, partial):
            yield partial
    finally:
        if descriptor in _locks:
            _locks.remove(descriptor)
            os.close(descriptor)


def _let_go() -> None:
    """Close the parent's locks: a worker that outlives it for a moment must not block the next run."""
    for descriptor in (*_locks, *_held.values()):
        os.close(descriptor)
    _locks.clear()
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def _take_over(partial: Path, key: str | None) -> None:
    """Empty the folder unless it was made for this key."""
    found = partial / _KEY
    if key is None or not found.is_file() or found.read_bytes() != key.encode():
        _empty(partial)
    # Without a key the folder is not continued; it may be removed once its process has ended.
    name, content = (_OWNER, _HOST) if key is None else (_KEY, key)
    with atomic_file(partial / name) as file:
        file.write(content.encode())


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
    sync_folder(path.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


def _empty(folder: Path) -> None:
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()


def sync_folder(folder: Path) -> None:
    """Write the names of a folder's files to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

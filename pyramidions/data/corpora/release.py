"""The files of a release: in a folder, in its archives, or in one archive."""

import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.documents.records import UNPACK, LinesFile, file_size

ARCHIVE = ".zip"


class ReleaseFile(NamedTuple):
    """A file of a release."""

    path: str  # below the release, whose name is its first part; archives are folders, and no `.gz` or `.xz` ends it
    lines: LinesFile  # reads it

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).name.partition(".")[0]

    def matches(self, pattern: str) -> bool:
        """Return whether the path is one of a pattern, in which `*` also stands for slashes."""
        return fnmatchcase(f"/{self.path}", pattern)


def release_files(release: Path) -> list[ReleaseFile]:
    """Return the files of a release, in the order of their paths."""
    root = release.resolve()
    if release.is_file():
        found = list(_files_of(release, root.name))
    else:
        paths = [path for path in release.rglob("*") if path.is_file()]
        found = [
            file for path in paths for file in _files_of(path, f"{root.name}/{path.relative_to(release).as_posix()}")
        ]
    found = sorted((file for file in found if not _is_hidden(file.path)), key=attrgetter("path", "lines.name"))
    if twice := next((two for one, two in pairwise(found) if one.lines.name == two.lines.name), None):
        raise UserError(f"An archive must hold each file once, but {twice.lines.name} comes twice.")
    return found


def _files_of(path: Path, name: str) -> Iterator[ReleaseFile]:
    if path.suffix != ARCHIVE:
        yield _release_file(name, str(path), file_size(path), partial(path.open, "rb"))
        return
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"{path} is damaged ({error}).") from None
    for member in members:
        inside = member.filename
        yield _release_file(f"{name}/{inside}", f"{path}/{inside}", member.file_size, partial(_open, path, inside))


def _release_file(path: str, name: str, size: int, opened: Any) -> ReleaseFile:
    ending = PurePosixPath(path).suffix
    unpack = UNPACK.get(ending)
    lines = LinesFile(name, size, opened, unpack or UNPACK[""])
    return ReleaseFile(path.removesuffix(ending) if unpack else path, lines)


def _open(path: Path, member: str) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            # An open member keeps the archive open.
            return archive.open(member)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise UserError(f"{path}/{member} cannot be read ({error}).") from None


def _is_hidden(path: str) -> bool:
    # Programs of macOS write such copies into archives. The release itself may be hidden.
    return any(part.startswith(".") or part == "__MACOSX" for part in path.split("/")[1:])

"""Tells whole checkpoints from damaged ones: torch's format is a zip archive with a checksum for each record."""

import shutil
import zipfile
from pathlib import Path

from pyramidions.files.atomic import atomic_file

# How torch's format before 1.6 begins.
_PICKLE = b"\x80"


def is_damaged(path: Path) -> bool:
    """Return whether a file is known to be damaged, or no checkpoint at all.

    A file in torch's format before 1.6 has no checksums: it counts as undamaged here, and fails when it is loaded.
    """
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except OSError:
        return True
    return first != _PICKLE and not is_whole_checkpoint(path)


def is_whole_checkpoint(path: Path) -> bool:
    """Return whether every byte of a checkpoint can be read back: every record is compared with its checksum.

    The directory at the end can be right although records are damaged, or although a part of an earlier attempt lies
    before the archive, which torch refuses.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _begin(archive) == 0 and _is_intact(archive)
    except Exception:
        # A damaged header can make the reader raise any error.
        return False


def cut_leftover(path: Path) -> bool:
    """Remove what an earlier attempt left before a whole archive; return whether the file is whole then.

    fairseq, where a disk is full, tries again twice on the same open file: the last attempt then stands whole behind
    parts of the earlier ones. A file that this does not make whole stays as it is.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            begin = _begin(archive)
            if begin <= 0 or not _is_intact(archive):
                return False
    except Exception:
        return False
    with path.open("rb") as damaged, atomic_file(path) as file:
        damaged.seek(begin)
        shutil.copyfileobj(damaged, file, 1 << 20)
    return is_whole_checkpoint(path)


def _is_intact(archive: zipfile.ZipFile) -> bool:
    # torch compresses nothing: a compressed record has a damaged header.
    stored = all(record.compress_type == zipfile.ZIP_STORED for record in archive.infolist())
    return stored and archive.testzip() is None


def _begin(archive: zipfile.ZipFile) -> int:
    return min((record.header_offset for record in archive.infolist()), default=-1)

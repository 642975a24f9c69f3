"""Whether a checkpoint is whole: torch's format is a zip archive, and each of its records has a checksum."""

import shutil
import zipfile
from pathlib import Path

from pyramidions.data.atomic import atomic_file

# How torch's format before 1.6 begins.
_PICKLE = b"\x80"


def is_damaged(path: Path) -> bool:
    """Return whether a file is known to be damaged, or no checkpoint at all.

    A file in torch's format before 1.6 has no checksums: it counts as undamaged here, and only loading it tells.
    """
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except OSError:
        return True
    return first != _PICKLE and not is_whole_checkpoint(path)


def is_whole_checkpoint(path: Path) -> bool:
    """Return whether a file is a checkpoint of which every byte can be read back.

    Every record is read and compared with its checksum. The directory at the end of the archive alone would not do:
    it says nothing about the records, and stands where it should even if a part of an earlier attempt lies before the
    archive, which torch refuses.

    Args:
        path: what `torch.save` wrote, or what a kill or a full disk left of it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _begin(archive) == 0 and _is_intact(archive)
    except Exception:
        # A damaged header makes the reader raise whatever it happens to run into.
        return False


def cut_leftover(path: Path) -> bool:
    """Cut off what an earlier attempt left before a whole archive, in place; return whether that made the file whole.

    fairseq, where a disk is full, tries again twice on the same open file: the last attempt then stands whole behind
    parts of the earlier ones. A file that this does not make whole stays as it is.

    Raises:
        OSError: the disk has no room for the archive a second time.
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
    # torch compresses nothing: a record that is said to be compressed has a damaged header.
    stored = all(record.compress_type == zipfile.ZIP_STORED for record in archive.infolist())
    return stored and archive.testzip() is None


def _begin(archive: zipfile.ZipFile) -> int:
    return min((record.header_offset for record in archive.infolist()), default=-1)

"""Whether a checkpoint is whole: torch's format is a zip archive, and each of its records has a checksum."""

import zipfile
from pathlib import Path


def is_whole(path: Path) -> bool:
    """Return whether a file is a checkpoint of which every byte can be read back.

    Every record is read and compared with its checksum. The directory at the end of the archive alone would not do:
    it says nothing about the records, and stands where it should even if a part of an earlier attempt lies before the
    archive, which torch refuses.

    Args:
        path: what `torch.save` wrote, or what a kill or a full disk left of it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            records = archive.infolist()
            begins = min((record.header_offset for record in records), default=-1)
            return begins == 0 and archive.testzip() is None
    except (OSError, zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError):
        # A damaged header makes the reader raise whatever it happens to run into.
        return False

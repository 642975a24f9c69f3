"""Opens documents that are ZIP archives of XML."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.documents.xml_tree import xml_tree
from pyramidions.files.bounded import printable, require_unpacked


@contextmanager
def xml_archive(path: Path) -> Iterator[ZipFile]:
    """Open an archive.

    Raises:
        UserError: it unpacks to too much for its size; or the block raises any error, as a damaged file can make it.
    """
    name = printable(path)
    try:
        with ZipFile(path) as archive:
            require_unpacked(archive, path.stat().st_size, name)
            yield archive
    except (UserError, MemoryError):
        raise
    except Exception as error:
        # A damaged archive can make the library raise any error.
        raise UserError(f"{name} cannot be read as {path.suffix.lower()} ({error}).") from None


def member_tree(archive: ZipFile, member: str, name: str) -> etree._Element:
    """Return the root of an XML file in an archive.

    Args:
        archive: holds it.
        member: its name in the archive.
        name: of the archive, for an error.

    Raises:
        UserError: it is no XML, or declares entities.
        KeyError: there is none.
    """
    with archive.open(member) as file:
        return xml_tree(file, f"{name}/{member}")

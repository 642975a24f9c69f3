"""Reads XML that nothing is known of, alone or in ZIP archives: no entity is expanded, and nothing is fetched."""

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zipfile import ZipFile

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.files.bounded import printable, require_unpacked


def xml_tree(file: IO[bytes], name: str, *, keeps_namespaces: bool = False) -> etree._Element:
    """Return the root of a file, without comments and processing instructions.

    Elements stand at most 256 deep inside one another. A DTD outside of the file is not read.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        tree = etree.parse(file, parser)
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from None
        raise UserError(f"{name} must be XML, but is not ({error.msg}).") from None
    declared = tree.docinfo.internalDTD
    if declared is not None and any(declared.iterentities()):
        raise UserError(f"{name} must declare no entities, which may be of any size.")
    for element in [] if keeps_namespaces else tree.iter(etree.Element):
        element.tag = etree.QName(element).localname
    return tree.getroot()


@contextmanager
def xml_archive(path: Path) -> Iterator[ZipFile]:
    """Open an archive that does not unpack to too much; errors of the block, as damage causes, are UserErrors."""
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


def member_tree(archive: ZipFile, member: str, name: str, *, keeps_namespaces: bool = False) -> etree._Element:
    """Return the root of an XML file in an archive, as `xml_tree` does; a KeyError says that there is none."""
    with archive.open(member) as file:
        return xml_tree(file, f"{name}/{member}", keeps_namespaces=keeps_namespaces)


def attribute(element: etree._Element, name: str) -> str:
    """Return an attribute by its name in a namespace, of which Office has two each; "" if there is none."""
    return next((str(value) for key, value in element.items() if str(key).endswith("}" + name)), "")


def targets(archive: ZipFile, member: str, name: str) -> dict[str, tuple[str, str]]:
    """Return what a file of an archive of Office refers to: by id, the kind and the name of the other file."""
    folder, file = posixpath.split(member)
    relations = posixpath.join(folder, "_rels", f"{file}.rels")
    if relations not in archive.NameToInfo:
        return {}
    return {
        each.get("Id", ""): (
            each.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/"),
        )
        for each in member_tree(archive, relations, name).iter("Relationship")
    }

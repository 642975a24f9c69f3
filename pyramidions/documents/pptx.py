"""Reads presentations in PowerPoint's format (Office Open XML, ECMA-376, part 1, PresentationML)."""

import posixpath
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.documents.xml_archive import member_tree, xml_archive
from pyramidions.files.bounded import printable
from pyramidions.text.headings import HeadedText

_PRESENTATION = "ppt/presentation.xml"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_TITLES = ("title", "ctrTitle")
# Date, footer and number stand on every slide; a notes page repeats its slide as a picture.
_LEFT_OUT = ("dt", "ftr", "sldNum", "hdr", "sldImg")


def pptx_text(path: Path) -> HeadedText:
    """Return the text of a presentation: of each slide, its title as a heading, its paragraphs, and its notes.

    Hidden slides, tables, charts and pictures are left out, and so are dates, footers and numbers of slides.

    Args:
        path: a file of PowerPoint 2007 or later, or what other programs write in its format.

    Raises:
        UserError: it is damaged or encrypted, has no slides, or unpacks to too much for its size.
    """
    name = printable(path)
    with xml_archive(path) as archive:
        targets = _targets(archive, _PRESENTATION, name)
        slides = [each.get(_ID) for each in member_tree(archive, _PRESENTATION, name).iter("sldId")]
        if not slides:
            raise UserError(f"{name} must hold slides, but holds none.")
        return HeadedText.of(part for slide in slides for part in _slide(archive, targets[slide][1], name))


def _slide(archive: ZipFile, member: str, name: str) -> Iterator[str | int]:
    root = member_tree(archive, member, name)
    if root.get("show") in ("0", "false"):
        return
    shapes = list(_shapes(root))
    for _, lines in (shape for shape in shapes if shape[0] in _TITLES):
        yield from (1, f"{' '.join(lines)}\n\n")
    for lines in [lines for kind, lines in shapes if kind not in _TITLES]:
        yield "".join(f"{line}\n" for line in lines) + "\n"
    for kind, notes in _targets(archive, member, name).values():
        if kind == "notesSlide":
            for _, lines in _shapes(member_tree(archive, notes, name)):
                yield "".join(f"{line}\n" for line in lines) + "\n"


def _shapes(root: etree._Element) -> Iterator[tuple[str, list[str]]]:
    """Yield the shapes that hold text, in their order, each with the kind of its placeholder and its paragraphs."""
    for shape in root.iter("sp"):
        kind = next((each.get("type", "") for each in shape.iter("ph")), "")
        lines = [" ".join(_runs(each).split()) for each in shape.iter("p")]
        if kind not in _LEFT_OUT and any(lines):
            yield kind, list(filter(None, lines))


def _runs(paragraph: etree._Element) -> str:
    return "".join(each.text or "" if each.tag == "t" else " " for each in paragraph.iter("t", "br"))


def _targets(archive: ZipFile, member: str, name: str) -> dict[str, tuple[str, str]]:
    """Return what a file of the archive refers to: by id, the kind and the name of the other file."""
    folder, file = posixpath.split(member)
    relations = f"{folder}/_rels/{file}.rels"
    if relations not in archive.namelist():
        return {}
    return {
        each.get("Id", ""): (
            each.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/"),
        )
        for each in member_tree(archive, relations, name).iter("Relationship")
    }

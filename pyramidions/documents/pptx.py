"""Reads presentations in PowerPoint's format (Office Open XML, ECMA-376, part 1, PresentationML)."""

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.documents.formulas import marked, on_the_line
from pyramidions.documents.xml_tree import attribute, member_tree, targets, xml_archive
from pyramidions.files.bounded import printable
from pyramidions.text.headings import HeadedText
from pyramidions.text.normalization import STOPS, joined_lines

_PRESENTATION = "ppt/presentation.xml"
_TITLES = ("title", "ctrTitle")
# A line break within a paragraph: before what begins anew, if there are several and no line goes on in the next; and
# before a bullet or an empty line.
_ITEM = re.compile(r"\n(?=[ (\"“«]{0,3}[A-ZÀ-ÖØ-ÞΑ-ΩА-Я\d•●▪◦‣·–-])")
_GOES_ON, _ENTRY = re.compile(r"(?:(?<!\w)[a-zß-öø-ÿα-ωа-я]{1,3}|,)\s*$"), re.compile(r"\n(?=[ \t]*[\n•●▪◦‣·])")
# Date, footer and number stand on every slide; a notes page repeats its slide as a picture.
_LEFT_OUT = ("dt", "ftr", "sldNum", "hdr", "sldImg", "pic")


def pptx_text(path: Path) -> HeadedText:
    """Return the text of a presentation: of each slide, its title or number, a heading, its paragraphs, and its notes.

    Hidden slides, tables, charts, pictures with captions, dates, footers and numbers of slides are left out.
    """
    name = printable(path)
    with xml_archive(path) as archive:
        parts = targets(archive, _PRESENTATION, name)
        # Each once, however often it is named.
        listed = member_tree(archive, _PRESENTATION, name).iter("sldId")
        slides = dict.fromkeys(attribute(each, "id") for each in listed)
        if not slides:
            raise UserError(f"{name} must hold slides, but holds none.")
        members = [parts[slide][1] for slide in slides]
        return HeadedText.of(part for n, each in enumerate(members, 1) for part in _slide(archive, each, name, n))


def _slide(archive: ZipFile, member: str, name: str, number: int) -> Iterator[str | int]:
    root = member_tree(archive, member, name)
    if root.get("show") in ("0", "false"):
        return
    shapes = list(_shapes(root))
    title = " ".join(line for kind, lines in shapes if kind in _TITLES for line in lines)
    yield from (1, f"{title or f'Slide {number}'}\n\n")
    # Paragraphs of a slide are entries of a list, which end in no full stop.
    yield from (f"{line}\n\n" for kind, lines in shapes if kind not in _TITLES for line in lines)
    for kind, notes in targets(archive, member, name).values():
        if kind == "notesSlide":
            yield from (f"{line}\n\n" for _, lines in _shapes(member_tree(archive, notes, name)) for line in lines)


def _shapes(root: etree._Element) -> Iterator[tuple[str, list[str]]]:
    """Yield the shapes that hold text, in their order, each with the kind of its placeholder and its paragraphs."""
    for shape in root.iter("sp"):
        if next(shape.iterancestors("Fallback"), None) is not None:
            # The same again, for older programs.
            continue
        kind = next((each.get("type", "") for each in shape.iter("ph")), "")
        lines = [joined_lines(line) for each in shape.iter("p") for line in _items(_runs(each))]
        if kind not in _LEFT_OUT and any(lines) and not _is_caption(shape, "".join(lines)):
            yield kind, list(filter(None, lines))


def _is_caption(shape: etree._Element, text: str) -> bool:
    """Return whether a shape is a text box behind a picture, and holds no sentence."""
    behind = shape.getprevious()
    is_box = shape.find(".//cNvSpPr[@txBox]") is not None
    return is_box and behind is not None and behind.tag == "pic" and not text.endswith(tuple(STOPS))


def _items(paragraph: str) -> list[str]:
    """Cut a paragraph into the entries of a list; the lines of a sentence stay together."""
    begun = _ITEM.split(paragraph.rstrip())
    is_list = len(begun) > 2 and not begun[-1].endswith(tuple(STOPS)) and not any(map(_GOES_ON.search, begun[:-1]))
    return begun if is_list else _ENTRY.split(paragraph)


def _runs(paragraph: etree._Element) -> str:
    text = ""
    for each in paragraph.iter("t", "br"):
        style = each.getparent().find("rPr") if each.tag == "t" else None
        said = "\n" if each.tag == "br" else each.text or ""
        # In thousandths of a percent of the height of the type.
        baseline = "" if style is None else style.get("baseline", "").strip("0")
        kind = "sub" if baseline.startswith("-") else "sup"
        text += marked(kind, said) if baseline.removeprefix("-").isdecimal() else said
    return on_the_line(text)

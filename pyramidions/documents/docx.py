"""Reads documents of Word by mammoth, after a pass over their XML (Office Open XML, ECMA-376, part 1)."""

import re
from collections.abc import Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

from lxml import etree

from pyramidions.documents.formulas import marked
from pyramidions.documents.lost import note_lost
from pyramidions.documents.page_text import page_text
from pyramidions.documents.word_fields import mend_fields
from pyramidions.documents.xml_tree import attribute, member_tree, targets, xml_archive
from pyramidions.files.bounded import printable
from pyramidions.text.headings import HeadedText
from pyramidions.text.normalization import STOPS, UNSPACED

# mammoth makes headings of Word's own styles, but not of this one. It knows a style by its name, which Word translates,
# or by its id.
_TITLE = "p[style-name='Title'] => h1:fresh\np.Title => h1:fresh"
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
# Levels of the outline begin at 0; the last is that of text. mammoth knows headings down to the sixth.
_BODY, _DEEPEST = 9, 6
# Names of styles of what is no running text, and of code; Word translates none of its own. Their levels are below those
# of headings.
_NO_TEXT = re.compile(
    r"((?:\w+ )?caption|toc (?:\d|heading)|table of (?:figures|authorities)|bibliography|index \d|title page.*)|"
    r"source code|html preformatted|macro",
    re.IGNORECASE,
)
_LEFT_OUT, _CODE = -1, -2
_OFF = ("0", "false", "off")
# What mammoth leaves out with all that is inside: the base of a reading, text in a direction, fields, and a text box in
# the form that newer programs read. `Fallback` holds the same box for older ones.
_AROUND_TEXT = ("ruby", "rubyBase", "bdo", "dir", "fldSimple", "AlternateContent", "Choice")
_WITHOUT_TEXT = ("rt", "Fallback", "oMathPara")
# Formulas (section 22.1) that do not stand on the line, by what MathML calls them, and their parts.
_FORMULAS = {
    "sSup": ("msup", ("e", "sup")),
    "sSub": ("msub", ("e", "sub")),
    "sSubSup": ("msubsup", ("e", "sub", "sup")),
    "f": ("mfrac", ("num", "den")),
    "rad": ("mroot", ("e", "deg")),
    "limLow": ("munder", ("e", "lim")),
    "limUpp": ("mover", ("e", "lim")),
    "d": ("mfenced", ("e",)),
    "m": ("mtable", ("mr",)),
    "mr": ("mtr", ("e",)),
    "eqArr": ("mtable", ("e",)),
}
# More than the label of a cell: letters, those of scripts without spaces, or characters before a full stop.
_LINE = re.compile(
    rf"(?:[^\W\d_][\W\d_]*+){{20}}|(?:[{UNSPACED}][^\w{UNSPACED}]*+){{8}}|.{{12}}[{re.escape(STOPS)}]\s*$"
)
# Of half a point; less does not raise or lower a run.
_RAISED = 4


def docx_text(path: Path) -> HeadedText:
    """Return the text of a document with its headings, known by their style or by their level in the outline.

    Tables of several columns, pictures, captions, notes, code, hidden text and formulas in lines of their own are left
    out.
    """
    import mammoth

    with xml_archive(path) as archive:
        # Pictures would be text of many megabytes.
        no_pictures = mammoth.images.img_element(lambda _: {})
        no_notes = mammoth.transforms.element_of_type(
            mammoth.documents.NoteReference, lambda _: mammoth.documents.text("")
        )
        mended, held = _mended(archive, name := printable(path))
        page = mammoth.convert_to_html(
            mended, convert_image=no_pictures, transform_document=no_notes, style_map=_TITLE
        ).value
        found = page_text(page, name)
        note_lost(name, held, found)
        return found


def _mended(archive: ZipFile, name: str) -> tuple[BytesIO, list[str]]:
    """Return the XML files of an archive, with the document's text where mammoth finds it, and its paragraphs."""
    document = _target(archive, "", "officeDocument", name)
    styles = _target(archive, document, "styles", name)
    levels = _style_levels(member_tree(archive, styles, name)) if styles in archive.NameToInfo else {}
    content, held = BytesIO(), list[str]()
    with ZipFile(content, "w") as copy:
        for member in archive.namelist():
            if member == document:
                root = member_tree(archive, member, name, keeps_namespaces=True)
                _mend(root, levels)
                held = ["".join(text.text or "" for text in each.iter("{*}t")) for each in root.iter("{*}p")]
                copy.writestr(member, etree.tostring(root))
            elif member.endswith((".xml", ".rels")):
                copy.writestr(member, archive.read(member))
    return content, held


def _target(archive: ZipFile, member: str, kind: str, name: str) -> str:
    return dict(targets(archive, member, name).values()).get(kind, "")


def _style_levels(styles: etree._Element) -> dict[str, int]:
    """Return the levels of the styles of headings, from 0 on, by their ids; less for those of no text."""
    by_id = {attribute(each, "styleId"): each for each in styles.iter("style")}

    def level_of(name: str, depth: int = 0) -> int | None:
        style = by_id.get(name)
        # Styles that are based on one another in a circle end, too.
        if style is None or depth > len(by_id):
            return None
        if kind := _NO_TEXT.fullmatch(_value(style, "name")):
            return _LEFT_OUT if kind[1] else _CODE
        if (outline := style.find("pPr/outlineLvl")) is not None:
            return int(attribute(outline, "val"))
        if heading := _HEADING.fullmatch(_value(style, "name")):
            return int(heading[1]) - 1
        return level_of(_value(style, "basedOn"), depth + 1)

    levels = {name: level_of(name) for name in by_id}
    return {name: level for name, level in levels.items() if level is not None}


def _mend(root: etree._Element, levels: Mapping[str, int]) -> None:
    word = root.tag.removesuffix("document")
    mend_fields(root, word)
    etree.strip_elements(root, *(f"{{*}}{tag}" for tag in _WITHOUT_TEXT), with_tail=False)
    etree.strip_tags(root, *(f"{{*}}{tag}" for tag in _AROUND_TEXT))
    _remove_tables(root, word)
    marks = ((run, run.find(f"{word}rPr/{word}vanish")) for run in root.iter(f"{word}r"))
    hidden = [run for run, mark in marks if mark is not None and attribute(mark, "val") not in _OFF]
    for run in hidden:
        run.getparent().remove(run)
    for place in root.iter(f"{word}position"):
        if abs(height := int(attribute(place, "val"))) >= _RAISED:
            place.tag = f"{word}vertAlign"
            place.set(f"{word}val", "superscript" if height > 0 else "subscript")
    for formula in list(root.iter("{*}oMath")):
        run = etree.Element(f"{word}r")
        etree.SubElement(run, f"{word}t").text = _marked(formula)
        formula.getparent().replace(formula, run)
    for box in list(root.iter(f"{word}txbxContent")):
        for paragraph in islice(box.iterancestors(f"{word}p"), 1):
            for inside in reversed(box):
                paragraph.addnext(inside)
    styled = [(levels.get(_value(each, f"{word}pPr/{word}pStyle")), each) for each in root.iter(f"{word}p")]
    # Judgments and letters from the web are set as code.
    is_code = 2 * sum(_letters(each, word) for level, each in styled if level == _CODE) > _letters(root, word)
    for level, paragraph in styled:
        if level == _LEFT_OUT or (level == _CODE and not is_code):
            paragraph.getparent().remove(paragraph)
    for paragraph in list(root.iter(f"{word}p")):
        _mend_paragraph(paragraph, word, levels)


def _letters(element: etree._Element, word: str) -> int:
    return sum(len(text.text or "") for text in element.iter(f"{word}t"))


def _remove_tables(root: etree._Element, word: str) -> None:
    """Remove tables of several columns; where they hold most of the text, only those of labels and numbers."""

    def lays_out(table: etree._Element) -> bool:
        cells = ["".join(text.text or "" for text in each.iter(f"{word}t")) for each in table.iter(f"{word}p")]
        return 2 * sum(len(cell) for cell in cells if _LINE.search(cell)) >= _letters(table, word)

    tables = [table for table in root.iter(f"{word}tbl") if table.find(f"{word}tr/{word}tc[2]") is not None]
    inside = {inner for table in tables for inner in table.iterdescendants(f"{word}tbl")}
    outer = [table for table in tables if table not in inside]
    is_most = 2 * sum(_letters(table, word) for table in outer) > _letters(root, word)
    for table in outer:
        if not (is_most and lays_out(table)):
            table.getparent().remove(table)


def _mend_paragraph(paragraph: etree._Element, word: str, levels: Mapping[str, int]) -> None:
    properties = paragraph.find(f"{word}pPr")
    if properties is None:
        return
    frame, behind = properties.find(f"{word}framePr[@{word}dropCap]"), paragraph.getnext()
    if frame is not None and behind is not None and behind.tag == paragraph.tag:
        # A drop cap is a paragraph of its own before the one that it begins.
        start = int(behind.find(f"{word}pPr") is not None)
        behind[start:start] = paragraph.findall(f"{word}r")
        paragraph.getparent().remove(paragraph)
        return
    style, outline = (properties.find(f"{word}{tag}") for tag in ("pStyle", "outlineLvl"))
    level = levels.get(attribute(style, "val")) if style is not None else None
    if outline is not None:
        level = int(attribute(outline, "val"))
    if level is not None and 0 <= level < _BODY:
        style = etree.SubElement(properties, f"{word}pStyle") if style is None else style
        style.set(f"{word}val", f"Heading{min(level + 1, _DEEPEST)}")


def _value(element: etree._Element, tag: str) -> str:
    child = element.find(tag)
    return "" if child is None else attribute(child, "val")


def _marked(formula: etree._Element) -> str:
    """Return the text of a part of a formula with marks."""
    tag = etree.QName(formula).localname
    if tag == "t":
        return formula.text or ""
    children = {name: [_marked(part) for part in formula.findall(f"{{*}}{name}")] for name in ("e", "sub", "sup")}
    if tag == "nary":
        sign = formula.find("{*}naryPr/{*}chr")
        base = "∫" if sign is None else attribute(sign, "val")
        return marked("munderover", base, *children["sub"], *children["sup"]) + " ".join(["", *children["e"]])
    if tag == "sPre":
        return marked("mmultiscripts", *children["e"], marked("mprescripts"), *children["sub"], *children["sup"])
    if tag in _FORMULAS:
        kind, names = _FORMULAS[tag]
        style = formula.find("{*}fPr/{*}type")
        kind = "binom" if style is not None and attribute(style, "val") == "noBar" else kind
        return marked(kind, *(_marked(part) for name in names for part in formula.findall(f"{{*}}{name}")))
    return "".join(map(_marked, formula))

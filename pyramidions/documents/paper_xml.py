"""Reads papers in XML: JATS, as PubMed Central has them, and TEI, as GROBID writes it."""

import html
import re
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.documents.formulas import APART, END, MARKS, NEXT, on_the_line
from pyramidions.documents.xml_tree import xml_tree
from pyramidions.files.bounded import printable
from pyramidions.text.headings import HeadedText
from pyramidions.text.normalization import joined_lines

#: Where the abstract of a paper begins in its text.
ABSTRACT = "Abstract"
_NUMBERS, _YEAR = re.compile(r"[\d\s,;–()\[\]-]+"), re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
# Stands for numbers of a citation until it is known what surrounds them, as in "[1, 2]" and "[1], [2] and [3]".
_CITED, _BETWEEN = "\ue000", r"(?:[\s,;–-]|and)*"
_GROUP = r"(?:\[{0}\]|\({0}\)|{0})".format(f"{_CITED}(?:{_BETWEEN}{_CITED})*")
_CITATIONS = re.compile(rf"\s?{_GROUP}(?:{_BETWEEN}{_GROUP})*")
# Kinds of abstracts that are others than that of the paper, where it has several.
_OTHERS = ("graphical", "teaser", "toc", "video", "executive-summary", "plain-language-summary", "lay-summary")
_BODY_LEVEL = 2  # of the headings of sections, below the title


class _Format(NamedTuple):
    """How papers of a format are built; names are without their namespaces."""

    # title, abstract, body: paths of the title, of the abstracts and of the text.
    title: str
    abstract: str
    body: str
    # section, heading: elements that hold a section, and the heading of it.
    section: str
    heading: str
    blocks: frozenset[str]  # elements whose text is a line of its own
    skipped: frozenset[str]  # elements that hold no text of the paper
    mention: tuple[str, str]  # of an element that names another, and of its attribute that says of which kind that is
    breaks: str  # elements that are a space


#: By the root element.
FORMATS = {
    "article": _Format(
        "front/article-meta/title-group/article-title",
        "front/article-meta/abstract",
        "body",
        "sec",
        "title",
        frozenset(["p", "list-item", "def", "verse-line", "attrib"]),
        frozenset(
            """
            rt rp fig fig-group table-wrap table-wrap-group disp-formula disp-formula-group graphic media
            supplementary-material annotation fn fn-group label ref-list caption object-id preformat code strike
            sec-meta inline-graphic inline-supplementary-material
            """.split()  # noqa: SIM905, a list has a line for each word
        ),
        ("xref", "ref-type"),
        "break",
    ),
    "TEI": _Format(
        "teiHeader/fileDesc/titleStmt/title",
        "teiHeader/profileDesc/abstract",
        "text/body",
        "div",
        "head",
        frozenset(["p", "ab", "item", "l", "speaker", "stage"]),
        frozenset(["figure", "table", "formula", "note", "listBibl", "graphic", "fw", "code", "desc"]),
        ("ref", "type"),
        "lb",
    ),
}


class Paper(NamedTuple):
    """A paper."""

    # title, abstract: without line ends; "" where the file has none.
    title: str
    abstract: str
    # The lines of the text, each with its level if it is a heading, from 2 on, and else with 0.
    body: list[tuple[int, str]]

    @property
    def text(self) -> HeadedText:
        """The title, the abstract and the text, each below its heading."""
        abstract = [(_BODY_LEVEL, ABSTRACT), (0, self.abstract)] if self.abstract else []
        # Else the text before the first heading would be that of the abstract.
        begins = abstract and self.body and not self.body[0][0]
        headed = any(level for level, _ in self.body)
        opening = [(_BODY_LEVEL, "Introduction" if headed else "Text")] if begins else []
        lines = [*([(1, self.title)] if self.title else []), *abstract, *opening, *self.body]
        parts: list[str | int] = []
        for level, line in lines:
            parts += [level, f"{line}\n\n"] if level else [f"{line}\n\n"]
        return HeadedText.of(parts)


def read_paper(path: Path) -> Paper:
    """Read a paper.

    Figures, tables, formulas in lines of their own, notes, references and numbers of citations are left out.
    """
    name = printable(path)
    with path.open("rb") as file:
        root = xml_tree(file, name)
    found = [root] if root.tag in FORMATS else list(root.iter(*FORMATS))
    if not found:
        raise UserError(f"{name} must be a paper in JATS or TEI, but its root is <{root.tag}>.")
    if len(found) > 1:
        raise UserError(f"{name} must hold one paper, but holds {len(found):,}.")
    paper, form = found[0], FORMATS[found[0].tag]
    abstracts = sorted(paper.findall(form.abstract), key=lambda each: each.get("abstract-type") is not None)
    abstract = next((each for each in abstracts if each.get("abstract-type") not in _OTHERS), None)
    title, summary, body = (_lines(each, form) for each in (paper.find(form.title), abstract, paper.find(form.body)))
    return Paper(_joined(title), _joined(summary), body)


def _joined(lines: list[tuple[int, str]]) -> str:
    return " ".join(text for level, text in lines if not level)


def _lines(element: etree._Element | None, form: _Format) -> list[tuple[int, str]]:
    """Return the lines of an element, each with its level if it is a heading, and else with 0."""
    reader = _Reader(form)
    if element is not None:
        reader.read(element, _BODY_LEVEL)
        reader.end()
    return reader.lines


class _Reader:
    """Collects lines, as `_lines` returns them, in one walk over elements; the parser bounds how deep these stand."""

    def __init__(self, form: _Format) -> None:
        self.lines: list[tuple[int, str]] = []
        self._form = form
        self._begun: list[str] = []
        self._in_formula = 0

    def read(self, element: etree._Element, level: int) -> None:
        form = self._form
        self._in_formula += element.tag == "math"
        self._add(element.text)
        for child in element:
            self._begun.append(NEXT if element.tag in APART else "")
            if child.tag is etree.Entity:
                # The DTD that says what it is was not read; the usual names are those of HTML.
                self._begun.append(html.unescape(child.text))
            elif child.tag == form.heading:
                if element.tag == form.section:
                    self.end()
                    self.read(child, level)
                    # GROBID numbers sections that do not stand inside one another.
                    self.end(max(level, _BODY_LEVEL + child.get("n", "").strip(".").count(".")))
            elif child.tag == form.breaks:
                self._begun.append(" ")
            elif self._is_number(child):
                self._begun.append(_CITED)
            elif child.tag == "tex-math":
                # The same may stand beside it in MathML.
                self._begun.append(_formula(child.text or "") if element.find("math") is None else "")
            elif str(child.tag).startswith("disp-formula"):
                self.end()  # no sentence goes on over what is not there
            elif child.tag not in form.skipped:
                kind = _kind(child)
                self._begun.append(MARKS.get(kind, ""))
                is_line = child.tag == form.section or child.tag in form.blocks
                if is_line:
                    self.end()
                self.read(child, level + (child.tag == element.tag == form.section))
                if is_line:
                    self.end()
                self._begun.append(END if kind else "")
            self._add(child.tail)
        self._in_formula -= element.tag == "math"

    def _add(self, text: str | None) -> None:
        # Spaces between the elements of a formula say nothing.
        self._begun.append((text or "") if not self._in_formula or (text or "").strip(" \t\r\n") else "")

    def end(self, level: int = 0) -> None:
        """End a line, which is a heading of this level, or of none."""
        text = _CITATIONS.sub("", " ".join(on_the_line(joined_lines("".join(self._begun))).split()))
        if text := text.removeprefix(". "):
            self.lines.append((level, text))
        self._begun = []

    def _is_number(self, element: etree._Element) -> bool:
        """Return whether an element only names sources or notes by their numbers or signs; years are none."""
        tag, kind = self._form.mention
        kinds = {each.get(kind) for each in element.iter(tag)}
        text = "".join(element.itertext())
        if kinds & {"fn", "table-fn", "foot", "note"}:
            return element.tag == tag
        return "bibr" in kinds and _NUMBERS.fullmatch(text) is not None and not _YEAR.search(text)


def _kind(element: etree._Element) -> str:
    """Return what `MARKS` calls an element; "" if it stands on the line."""
    if element.tag in MARKS:
        return str(element.tag)
    place = element.get("rend", "")[:3]
    return place if place in ("sup", "sub") else ""


def _formula(source: str) -> str:
    from pyramidions.documents.latex_formulas import formula_text

    return formula_text(source)

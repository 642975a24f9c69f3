"""The sentences of a document, and the sections that they stand in."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pyramidions.text.headings import Line, headed_lines
from pyramidions.text.normalization import normalize
from pyramidions.text.text_windows import sentences, windows

# A word that a line's end cuts, as in the text of a PDF file.
_HYPHENATED = re.compile(r"(?<=[a-z])-\n[ \t]*(?=[a-z])")
_SENTENCE_END = re.compile(r"[.!?:]['\")\]»”’]*\s*$")


class Unit(NamedTuple):
    """A heading or a sentence.

    Attributes:
        text: normalised, on one line, never empty.
        section: index into `Outline.headings`.
        is_heading: of a section or a subsection.
    """

    text: str
    section: int
    is_heading: bool = False


@dataclass(frozen=True)
class Outline:
    """A document cut into headings and sentences.

    Attributes:
        units: in reading order, the headings among them.
        headings: of the sections; "" for text before the first heading.
    """

    units: tuple[Unit, ...]
    headings: tuple[str, ...]

    @cached_property
    def sentences(self) -> list[Unit]:
        """The units that are not headings."""
        return [unit for unit in self.units if not unit.is_heading]

    @property
    def sections(self) -> list[list[str]]:
        """The sentences of each section; a heading without text has none."""
        found: list[list[str]] = [[] for _ in self.headings]
        for unit in self.sentences:
            found[unit.section].append(unit.text)
        return found

    @property
    def has_sections(self) -> bool:
        """Whether the document has any heading."""
        return any(self.headings)


def outline(text: str) -> Outline:
    """Cut a text into headings and sentences.

    A sentence ends at an empty line or a heading at the latest. Sections are what the headings of the highest level
    begin, of those levels that occur twice or more; the title of a document is no section.

    Args:
        text: any string; headings are found as `headed_lines` does.
    """
    lines = list(headed_lines(text))
    level = _section_level(lines)
    units: list[Unit] = []
    headings: list[str] = []
    for heading, paragraph in _blocks(lines):
        if heading is None:
            if not headings:
                headings.append("")
            units += (Unit(sentence, len(headings) - 1) for sentence in _sentences(paragraph))
        elif title := normalize(heading.text):
            is_title = not units and heading.level < level
            if heading.level <= level and not is_title:
                headings.append(title)
            elif not headings:
                headings.append("")
            units.append(Unit(title, len(headings) - 1, is_heading=True))
    return Outline(tuple(units), tuple(headings))


def _section_level(lines: list[Line]) -> int:
    levels = Counter(line.level for line in lines if line.level)
    repeated = [level for level, count in levels.items() if count > 1]
    return min(repeated or levels, default=0)


def _blocks(lines: list[Line]) -> Iterator[tuple[Line | None, str]]:
    """Yield headings, and in between paragraphs, each with its line breaks."""
    paragraph: list[str] = []
    for line in [*lines, Line("")]:
        if line.level or not line.text.strip() or line.begins_item:
            if paragraph:
                yield None, "\n".join(paragraph)
            paragraph = []
        if line.level:
            yield line, ""
        elif line.text.strip():
            paragraph.append(line.text)
            if _SENTENCE_END.search(line.text[-20:]):
                yield None, "\n".join(paragraph)
                paragraph = []


def _sentences(paragraph: str) -> Iterator[str]:
    begun = ""
    for some in sentences(windows(_HYPHENATED.sub("", paragraph))):
        for sentence in some:
            begun = f"{begun} {sentence}" if begun else sentence
            # The number of an entry in a list is no sentence.
            if any(map(str.isalpha, sentence)):
                yield begun
                begun = ""
    if begun:
        yield begun

"""The sentences of a document, and the sections that they stand in."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

from pyramidions.text.detection import detect_in_lines
from pyramidions.text.headings import Line, Lines, headed_lines
from pyramidions.text.hyphens import joint
from pyramidions.text.language import ENGLISH
from pyramidions.text.normalization import STOPS, ended_by_full_stops, readable, split_readable, unbroken
from pyramidions.text.text_windows import WINDOW, lines, sentences, windows

# A word that a line's end cuts, as in the text of a PDF file, and how much of the text beside it is looked at.
_HYPHENATED, _BESIDE = re.compile(r"-(?<=\w-)\n[ \t]*(?=\w)"), 60
_SENTENCE_END = re.compile(rf"[{STOPS}:]['\")\]»”’」』]*\s*$")
# No sentence has so many characters: a quotation was not closed, or the text has no full stops. The parts of such a
# text have at most so many.
_LONGEST, _PART = 2000, 200
_CLAUSE_END = re.compile(r"(?<=[;:]) |(?<=[；：])")
_ENCLOSING = str.maketrans(dict.fromkeys("\"'()[]{}“”„‘’‚«»‹›「」『』《》〈〉【】", "_"))


class Unit(NamedTuple):
    """A heading or a sentence."""

    text: str  # on one line, as people read it (`readable`), never empty
    section: int  # index into `Outline.headings`
    is_heading: bool = False  # of a section or a subsection


class Units(Sequence[Unit]):
    """Units in little more memory than their UTF-8: they are made when they are asked for.

    ``on_read`` is called with the number of characters of each text that `Texts` reads, unless it is None.
    """

    def __init__(self, units: Iterable[Unit]) -> None:
        self.on_read: Callable[[int], object] | None = None
        self._utf8, self._ends = bytearray(), array("I", [0])
        self.sections, self._is_heading = array("i"), bytearray()
        for text, section, is_heading in units:
            self._utf8 += text.encode("utf-8", "surrogatepass")
            if len(self._utf8) >= 2**32 and self._ends.typecode == "I":
                self._ends = array("Q", self._ends)
            self._ends.append(len(self._utf8))
            self.sections.append(section)
            self._is_heading.append(is_heading)
        self._places: Sequence[int] = range(len(self.sections))

    @property
    def sentences(self) -> "Units":
        """The units that are not headings, in the same memory."""
        units = copy(self)
        if 1 not in self._is_heading:
            return units
        units._places = array("i", (place for place in self._places if not self._is_heading[place]))
        units.sections = array("i", map(self.sections.__getitem__, units._places))
        return units

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(map(self.__getitem__, range(len(self))[at]))
        place = self._places[at]
        return Unit(self.text(place), self.sections[at], bool(self._is_heading[place]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def text(self, place: int) -> str:
        """Return the text of a unit by its place among all, headings counted."""
        return self._utf8[self._ends[place] : self._ends[place + 1]].decode("utf-8", "surrogatepass")


class Texts(Sequence[str]):
    """The texts of units."""

    def __init__(self, units: Units) -> None:
        self._units = units

    def __len__(self) -> int:
        return len(self._units)

    def __getitem__(self, at: Any) -> Any:
        return self._units[at].text if isinstance(at, int) else [unit.text for unit in self._units[at]]

    def __iter__(self) -> Iterator[str]:
        for place in self._units._places:
            text = self._units.text(place)
            if self._units.on_read is not None:
                self._units.on_read(len(text))
            yield text


@dataclass(frozen=True)
class Outline:
    """A document cut into headings and sentences."""

    units: Sequence[Unit]  # in reading order, the headings among them
    headings: tuple[str, ...]  # of the sections; "" for text before the first heading
    speakers: tuple[str, ...] = ()  # of the sentences of a dialogue; empty for any other document
    language: str = ENGLISH  # of the document, an ISO 639-1 code

    @cached_property
    def sentences(self) -> Units:
        """The units that are not headings."""
        return (self.units if isinstance(self.units, Units) else Units(self.units)).sentences

    @property
    def texts(self) -> Texts:
        """The sentences."""
        return Texts(self.sentences)

    @property
    def sections(self) -> list[list[str]]:
        """The sentences of each section; a heading without text has none."""
        by_section: list[list[str]] = [[] for _ in self.headings]
        for unit in self.sentences:
            by_section[unit.section].append(unit.text)
        return by_section

    @property
    def has_sections(self) -> bool:
        """Whether the document has any heading."""
        return any(self.headings)


def outline(
    text: str | Lines, on_read: Callable[[int], object] = lambda _: None, language: str | None = None
) -> Outline:
    """Cut a text, or what gives its lines, into headings and sentences.

    A sentence ends at an empty line or a heading at the latest. Sections are what the headings of the highest level
    begin, of those levels that occur twice or more; the title of a document is no section. Headings are those of
    `headed_lines`. The rules of a language end sentences, an ISO 639-1 code; None detects it. For each line,
    ``on_read`` is called with the number of its characters.
    """
    language = language or detect_in_lines(text() if callable(text) else lines(text))
    levels: Counter[int] = Counter()
    units = Units(_units(headed_lines(text), levels, on_read, language))
    repeated = [level for level, count in levels.items() if level and count > 1]
    section_level = min(repeated or filter(None, levels), default=0)
    headings: list[str] = []
    # So far, units have the levels of headings in place of sections.
    for place, level in enumerate(units.sections):
        is_title = place == 0 and level < section_level
        if 0 < level <= section_level and not is_title:
            headings.append(units[place].text)
        elif not headings:
            headings.append("")
        units.sections[place] = len(headings) - 1
    return Outline(units, tuple(headings), language=language)


def sentences_of(text: str, language: str) -> Iterator[str]:
    """Yield the sentences of a text by the rules of a language, and those that end without a space behind them.

    A sentence of more than 2,000 characters is split again, where those in quotation marks and brackets end, too. What
    is still as long has no full stops. It is cut behind semicolons and colons; and where these are missing, too, as in
    recognised speech, about every 200 characters.
    """
    # Most texts are paragraphs, and have one window.
    split = partial(split_readable, language=language)
    for some in [split(text)] if len(text) <= WINDOW else sentences(windows(text), split=split):
        for sentence in some:
            for part in filter(None, map(str.strip, ended_by_full_stops(sentence))):
                yield from (part,) if len(part) <= _LONGEST else _divided(part, language)


def _divided(sentence: str, language: str) -> Iterator[str]:
    begun = 0
    for part in split_readable(sentence.translate(_ENCLOSING), language):
        ended = begun + len(part)
        clauses = [sentence[begun:ended]] if len(part) <= _LONGEST else _CLAUSE_END.split(sentence[begun:ended])
        for clause in clauses:
            yield from map(str.strip, windows(clause, _PART if len(clause) > _LONGEST else _LONGEST))
        begun = ended + 1


def _units(
    headed: Iterable[Line], levels: Counter[int], on_read: Callable[[int], object], language: str
) -> Iterator[Unit]:
    """Yield headings, with their level for a section, and sentences, with 0; count the levels of all lines."""
    for level, text in _blocks(headed, levels, on_read):
        if level:
            if title := readable(text):
                yield Unit(title, level, is_heading=True)
            continue
        begun = ""
        for sentence in sentences_of(_HYPHENATED.sub(_rejoined, unbroken(text)), language):
            begun = f"{begun} {sentence}" if begun else sentence
            # The number of an entry in a list is no sentence.
            if any(map(str.isalpha, sentence)):
                yield Unit(begun, 0)
                begun = ""
        if begun:
            yield Unit(begun, 0)


def _blocks(
    headed: Iterable[Line], levels: Counter[int], on_read: Callable[[int], object]
) -> Iterator[tuple[int, str]]:
    """Yield headings with their level, and with 0 the lines up to where a sentence surely ends."""
    begun: list[str] = []
    for line in chain(headed, [Line("")]):
        levels[line.level] += 1
        on_read(len(line.text) + 1)
        if begun and (line.level or not line.text.strip() or line.begins_item):
            yield 0, "\n".join(begun)
            begun = []
        if line.level:
            yield line.level, line.text
        elif line.text.strip():
            begun.append(line.text)
            if ends_sentence(line.text):
                yield 0, "\n".join(begun)
                begun = []


def _rejoined(cut: re.Match[str]) -> str:
    text = cut.string
    return joint(text[max(cut.start() - _BESIDE, 0) : cut.start()], text[cut.end() : cut.end() + _BESIDE])


def ends_sentence(line: str) -> bool:
    """Return whether a sentence, or what announces others, surely ends with a line."""
    return _SENTENCE_END.search(line[-20:]) is not None

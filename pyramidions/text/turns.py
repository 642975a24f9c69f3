"""The turns of a dialogue: who says what, in lines of the form `Name: text`."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from pyramidions.text.detection import detect_in_lines
from pyramidions.text.headings import HeadedText, Lines
from pyramidions.text.normalization import readable
from pyramidions.text.outline import Outline, Unit, Units, outline, sentences_of
from pyramidions.text.text_windows import lines as lines_of

_MOST_CHARACTERS, _MOST_WORDS = 60, 6  # of a name
_COLON = re.compile("[:：]")
# "[00:12:04]" in front of a name.
_TIME = re.compile(r"\s*[\[(]?\d{1,2}:\d{2}(:\d{2})?([.,]\d{1,3})?[\])]?\s+")
# Noises and breaks that a transcript marks: {disfmarker}, [laughter], <cough>, (inaudible).
_NOISE = re.compile(
    r"\{[^{}\d]{1,30}\}|\[[^\[\]\d]{1,30}\]|<[^<>\d]{1,30}>|\((inaudible|unintelligible|laughter|laughs|crosstalk)\)",
    re.IGNORECASE,
)


class Turn(NamedTuple):
    """What somebody says in one go."""

    speaker: str  # the name before the colon, on one line
    text: str  # what stands behind it


def split_turn(line: str) -> Turn | None:
    """Return the turn that a line begins, perhaps behind a time; None for a line of another form.

    A name has at most six words and begins with a capital, or a letter of a script without capitals.
    """
    if time := _TIME.match(line):
        line = line[time.end() :]
    colon = _COLON.search(line, 0, _MOST_CHARACTERS)
    name = readable(line[: colon.start()]) if colon else ""
    if colon is None or not name[:1].isalpha() or name[0] != name[0].upper() or len(name.split()) > _MOST_WORDS:
        return None
    said = line[colon.end() :]
    # "https://" and "12:30" are no names.
    return Turn(name, said) if colon[0] == "：" or not said or said[0].isspace() else None


def read_outline(
    text: str | Lines, on_read: Callable[[int], object] = lambda _: None, language: str | None = None
) -> Outline:
    """Return the outline of a text: of a dialogue as `dialogue_outline` does; arguments as in `outline`."""
    return dialogue_outline(text, on_read, language) or outline(text, on_read, language)


def dialogue_outline(
    text: str | Lines, on_read: Callable[[int], object] = lambda _: None, language: str | None = None
) -> Outline | None:
    """Return the sentences of a dialogue, each with its speaker; None if a text is no dialogue.

    A text is a dialogue if most lines that are not blank are turns of two or more speakers who speak at least twice;
    several documents as one are none. A line without a name goes on with the turn above it. Names, and the noises that
    a transcript marks, such as {vocalsound}, are no part of the sentences. A dialogue is one section.
    """
    lines = text if callable(text) else partial(lines_of, text)
    speakers = frozenset() if isinstance(text, HeadedText) and text.is_joined else _speakers(lines())
    if not speakers:
        return None
    language = language or detect_in_lines(lines())
    said_by: list[str] = []
    units = Units(_units(lines(), speakers, said_by, on_read, language))
    return Outline(units, ("",), tuple(said_by), language)


def with_speakers(outline: Outline) -> Iterable[str]:
    """Return all sentences, those of a dialogue each behind its speaker, as if none said two in a row."""
    if not outline.speakers:
        return outline.texts
    return (f"{speaker}: {text}" for speaker, text in zip(outline.speakers, outline.texts, strict=True))


def spoken(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield sentences, given with their speakers ("" for none); of those in a row, the first begins with the name."""
    last = ""
    for speaker, text in said:
        yield text if speaker == last else f"{speaker}: {text}"
        last = speaker


def _speakers(lines: Iterable[str]) -> frozenset[str]:
    turns = Counter[str]()
    number = 0
    for line in lines:
        if line and not line.isspace():
            number += 1
            if turn := split_turn(line):
                turns[turn.speaker] += 1
    again = [count for count in turns.values() if count > 1]
    return frozenset(turns) if len(again) > 1 and 2 * sum(again) > number else frozenset()


def _units(
    lines: Iterable[str], speakers: frozenset[str], said_by: list[str], on_read: Callable[[int], object], language: str
) -> Iterator[Unit]:
    """Yield the sentences of a dialogue, and add the speaker of each to a list."""
    names = {name: name for name in speakers}  # one string for all turns of a speaker
    speaker = ""
    for line in lines:
        on_read(len(line) + 1)
        if turn := split_turn(line):
            speaker, line = names[turn.speaker], turn.text
        for sentence in sentences_of(_NOISE.sub(" ", line), language):
            said_by.append(speaker)
            yield Unit(sentence, 0)

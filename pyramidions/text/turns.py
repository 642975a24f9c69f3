"""The turns of a dialogue: who says what, in lines of the form `Name: text`."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from pyramidions.text.detection import detect_in_lines
from pyramidions.text.headings import LONGEST_UNBROKEN, HeadedText, Lines
from pyramidions.text.normalization import readable, unbroken
from pyramidions.text.outline import Outline, Unit, Units, ends_sentence, outline, sentences_of
from pyramidions.text.text_windows import lines as lines_of

_MOST_CHARACTERS, _MOST_WORDS = 60, 6  # of a name
_COLON = re.compile("[:：]")
# "[00:12:04]" or "05.05.25, 10:01 am - " in front of a name, and a name in brackets, as chats have it.
_TIME = re.compile(
    r"\s*[\[(]?(\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?[ T])?\d{1,2}:\d{2}(:\d{2})?([.,]\d{1,3})?( ?[ap]\.?m\.?)?[\])]?\s+"
    r"([-–]\s+)?",
    re.IGNORECASE,
)
# In papers of some corpora, <cit> and <dig> stand for citations and numbers.
_NICK = re.compile(r"\s*<[@+ ]?(?!(?:cit|dig)>)([^<>\s]{1,30})>(?=\s)")
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

    A name has at most six words and begins with a capital, or a letter of a script without capitals. One in small
    letters, as in chats, is one word; it may also stand in <brackets>.
    """
    if time := _TIME.match(line):
        line = line[time.end() :]
    if nick := _NICK.match(line):
        return Turn(nick[1], line[nick.end() :])
    colon = _COLON.search(line, 0, _MOST_CHARACTERS)
    name = readable(line[: colon.start()]) if colon else ""
    if colon is None or not name[:1].isalpha() or len(name.split()) > (1 if name[0].islower() else _MOST_WORDS):
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

    A text is a dialogue if most lines that are not blank are turns of two or more speakers who speak at least twice, or
    if all are turns of several speakers, and one speaks twice; several documents as one are none. A line without a name
    goes on with the turn above it. Lines of one speaker in a row are one turn, and a sentence may go on from line to
    line. Names, and the noises that a transcript marks, such as {vocalsound}, are no part of the sentences. A dialogue
    is one section.
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
    if len(turns) > 1 and again and turns.total() == number:
        return frozenset(turns)
    # A word in small letters before a colon may be any other.
    names = frozenset(name for name, count in turns.items() if count > 1 or not name[0].islower())
    return names if len(again) > 1 and 2 * sum(again) > number else frozenset()


def _units(
    lines: Iterable[str], speakers: frozenset[str], said_by: list[str], on_read: Callable[[int], object], language: str
) -> Iterator[Unit]:
    """Yield the sentences of a dialogue, and add the speaker of each to a list."""
    for speaker, text in _sayings(lines, speakers, on_read):
        for sentence in sentences_of(text, language):
            said_by.append(speaker)
            yield Unit(sentence, 0)


def _sayings(
    lines: Iterable[str], speakers: frozenset[str], on_read: Callable[[int], object]
) -> Iterator[tuple[str, str]]:
    """Yield what each speaker says, up to where a sentence surely ends.

    A line goes on with the one before of the same speaker, unless that ends a sentence: in lower case, as captions do,
    if the first one begins in upper case; and where the width of a page breaks the one before.
    """
    names = {name: name for name in speakers}  # one string for all turns of a speaker
    speaker, before, begun = "", "", list[str]()
    for line in lines:
        on_read(len(line) + 1)
        turn = said if (said := split_turn(line)) and said.speaker in speakers else None
        text = _NOISE.sub(" ", turn.text if turn else line).strip()
        same = turn is None or turn.speaker == speaker
        if begun and (text or not same):
            is_broken = turn is None and len(before) > LONGEST_UNBROKEN
            goes_on = is_broken or (begun[0][0].isupper() and text[:1].islower())
            if not same or not goes_on or ends_sentence(begun[-1]):
                yield speaker, unbroken("\n".join(begun))
                begun = []
        speaker, before = names[turn.speaker] if turn else speaker, line
        if text:
            begun.append(text)
    if begun:
        yield speaker, unbroken("\n".join(begun))

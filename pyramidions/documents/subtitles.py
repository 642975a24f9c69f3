"""The text of subtitles and of transcripts in WebVTT and SubRip, which say when each line is spoken."""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import chain

from pyramidions.text.normalization import joined_lines

_TIMES = re.compile(r"\s*(\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{3}\s+-->\s")
_SPEAKER_BEGINS = re.compile(r"(?=<v[\s.])")
_SPEAKER = re.compile(r"<v(?:\.[^ >]{0,80})?\s+([^<>]{1,80})>")
# "[music]", "(applause)", "♪ a song ♪"
_SOUND = re.compile(r"[♪♫\s]*(?:(?:\[[^\[\]]{0,80}\]|\([^()]{0,80}\))[♪♫\s]*)?|[♪♫][^♪♫]*[♪♫]")
#: Lines of a cue that may have rolled up from the one before.
_MOST_ROLLED = 8
_TAG = re.compile(r"</?[^<>\n]{0,80}>|\{\\[^{}]{0,40}\}")


def subtitle_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield what is spoken, without numbers, times, marks, notes, styles and sounds: a line for each turn.

    A turn is the cues of one speaker in a row, "Name: text". Before the first named speaker, each cue is a line.
    Captions that roll repeat lines of the cue before: they are left out.
    """
    turn, last = list[str](), ""
    for cue in _cues(lines):
        for speaker, spoken in cue:
            if turn and speaker and speaker != last:
                yield joined_lines("\n".join(turn))
                turn = []
            turn.append(f"{speaker}: {spoken}" if speaker and speaker != last else spoken)
            last = speaker or last
        if turn and not last:
            yield joined_lines("\n".join(turn))
            turn = []
    if turn:
        yield joined_lines("\n".join(turn))


def _cues(lines: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield the lines of each cue, parted where another speaker begins, each behind its speaker or ""."""
    cue: list[tuple[str, str]] | None = None  # None outside of a cue
    before: list[tuple[str, str]] = []
    for line in chain(lines, [""]):
        if (begins := _TIMES.match(line) is not None) or not line.strip():
            # Without an empty line between them, the number of the next cue stands behind this one.
            cue = cue[:-1] if begins and cue and cue[-1][1].isdigit() else cue
            yield _new_lines(cue or [], before)
            before, cue = cue or before, [] if begins else None
        elif cue is not None:
            for part in _SPEAKER_BEGINS.split(line):
                speaker = _SPEAKER.search(part)
                spoken = " ".join(unescape(_TAG.sub("", part)).split())
                if not _SOUND.fullmatch(spoken):
                    cue.append((speaker[1].strip() if speaker else "", spoken))


def _new_lines(cue: list[tuple[str, str]], before: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the lines of a cue but those that rolled up from the one before; a cue that repeats one is new."""
    for count in range(min(len(cue), len(before), _MOST_ROLLED), 0, -1):
        if cue[:count] == before[-count:] and max(len(cue), len(before)) > count:
            return cue[count:]
    return cue

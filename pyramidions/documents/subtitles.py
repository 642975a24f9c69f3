"""The text of subtitles and of transcripts in WebVTT and SubRip, which say when each line is spoken."""

import re
from collections.abc import Iterable, Iterator

_TIMES = re.compile(r"\s*(\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{3}\s+-->\s")
_SPEAKER = re.compile(r"<v(?:\.[^ >]{0,80})?\s+([^<>]{1,80})>")
# "[music]", "(applause)", "♪ a song ♪"
_SOUND = re.compile(r"[♪♫\s]*(?:(?:\[[^\[\]]{0,80}\]|\([^()]{0,80}\))[♪♫\s]*)?|[♪♫][^♪♫]*[♪♫]")
_TAG = re.compile(r"</?[^<>\n]{0,80}>|\{\\[^{}]{0,40}\}")


def subtitle_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield what is spoken: a line for each cue, without numbers, times, marks, notes, styles and sounds.

    A speaker stands in front, as in "Name: text". Captions that roll repeat the line above in the next cue: it is
    yielded once.

    Args:
        lines: of a file in WebVTT or SubRip.
    """
    cue: list[str] | None = None  # None outside of a cue
    last = ""
    for line in lines:
        if _TIMES.match(line):
            cue = []
        elif not line.strip():
            if cue:
                yield " ".join(cue)
            cue = None
        elif cue is not None:
            speaker = _SPEAKER.search(line)
            spoken = " ".join(_TAG.sub("", line).split())
            if not _SOUND.fullmatch(spoken) and spoken != last:
                cue.append(f"{speaker[1].strip()}: {spoken}" if speaker else spoken)
                last = spoken
    if cue:
        yield " ".join(cue)

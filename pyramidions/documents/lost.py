"""Says when part of a text was lost on the way: samples of what a file holds are looked up in what was read of it."""

import re
from collections.abc import Iterable

from pyramidions.base.notes import note

# Five words, or as much of a script without spaces.
_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{10}|\b[^\W\d_]{1,30}+(?:[ \n][^\W\d_]{1,30}+){4}")
# Samples that are looked up, and the fewest that tell.
_SAMPLES, _FEWEST = 200, 20
#: Share of the samples from which on nothing is said. Of 345 public files in Word's format, LaTeX and PDF, four have
#: less: a source without a brace, a table of 16 pages, a form, and a text with another drawn over it.
SHARE = 0.85


def note_lost(name: str, held: Iterable[str], read: str) -> None:
    """Compare what was read of a file with what it holds, and say so where much is missing.

    Args:
        name: of the file.
        held: the text that a reader should hand on, as the file has it, in any pieces.
        read: what it hands on.
    """
    runs = [" ".join(found[0].split()) for text in held for found in _RUN.finditer(text)]
    sample = runs[:: max(1, len(runs) // _SAMPLES)]
    text = " ".join(read.split())
    found = sum(run in text for run in sample)
    if text and len(sample) >= _FEWEST and found < SHARE * len(sample):
        missing = 1 - found / len(sample)
        note(f"{name}: about {missing:.0%} of its text is missing: tables, forms, or what could not be read.")

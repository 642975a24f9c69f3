"""What a summary copied: the greedy longest common fragments of two texts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Fragment(NamedTuple):
    """Words that two texts share, in the same order."""

    start: int  # of the fragment in the summary, in words
    source_start: int  # where the source has it first, in words
    length: int  # in words, at least 1


def fragments(summary: Sequence[str], source: Sequence[str]) -> list[Fragment]:
    """Return the fragments of a summary that stand in its source (Grusky et al., 2018, section 4).

    From the first word on, the longest run of words that the source contains is one fragment; the next one is looked
    for behind it. Words that the source lacks belong to none. The authors' program (figure 4) goes on behind each match
    in the source, so that it misses a longer one that begins within it: `a a b` in `a a a b`. This one does not.

    Time grows by the words of both texts, and for each word of the summary by the places where the source has the same
    two words.
    """
    first: dict[str, int] = {}
    pairs: dict[tuple[str, ...], list[int]] = {}
    for place, word in enumerate(source):
        first.setdefault(word, place)
    for place, pair in enumerate(pairwise(source)):
        pairs.setdefault(pair, []).append(place)
    pieces = []
    start = 0
    while start < len(summary):
        if places := pairs.get(tuple(summary[start : start + 2])):
            pieces.append(_longest(summary, start, source, places))
            start += pieces[-1].length
        else:
            if summary[start] in first:
                pieces.append(Fragment(start, first[summary[start]], 1))
            start += 1
    return pieces


def _longest(summary: Sequence[str], start: int, source: Sequence[str], places: list[int]) -> Fragment:
    """Extend the fragment that has two words in `places`, word by word, where the source goes on in the same way."""
    length = 2
    while start + length < len(summary):
        word = summary[start + length]
        further = [place for place in places if place + length < len(source) and source[place + length] == word]
        if not further:
            break
        places = further
        length += 1
    return Fragment(start, places[0], length)

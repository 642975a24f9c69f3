"""Cloze questions about a summary, for APES."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pyramidions.scoring.name_words import words
from pyramidions.scoring.reading import Span

# A number, a date in figures, or an amount of money.
_NUMBER = re.compile(r"(?<!\w)[$€£¥]?\d+(?:[.,:/-]\d+)*%?(?!\w)")
_ARTICLES = ("a", "an", "the")


class Cloze(NamedTuple):
    """A sentence with a blank, and what is left out."""

    question: str
    answer: str


def clozes(sentence: str, entities: Sequence[Span], blank: str) -> list[Cloze]:
    """Leave out each entity of a sentence in turn, and each number that is in none.

    Args:
        sentence: of a reference.
        entities: in it, such as names, events and dates.
        blank: what takes their place.
    """
    numbers = (Span(*found.span()) for found in _NUMBER.finditer(sentence))
    free = [span for span in numbers if not any(span.start < e.end and e.start < span.end for e in entities)]
    return [
        Cloze(sentence[: span.start] + blank + sentence[span.end :], sentence[span.start : span.end])
        for span in sorted([*entities, *free])
    ]


def answer_f1(answer: str, expected: str) -> float:
    """Return the F1 of the words of two answers, as in SQuAD (Rajpurkar et al. 2016): in lower case, without articles.

    It is 0 if either has no word.
    """
    given, wanted = _counted(answer), _counted(expected)
    shared = (given & wanted).total()
    return 2 * shared / (given.total() + wanted.total()) if shared else 0.0


def _counted(text: str) -> Counter[str]:
    return Counter(word for word in words(text) if word not in _ARTICLES)

"""Words of any script: where they stand, and their runs."""

import re
from collections.abc import Iterator, Sequence

from pyramidions.text.normalization import NORMALISATION, UNSPACED, normalize

#: What `words_and_marks` returns, for signatures.
WORDS = f"words and marks, lower case, normalisation {NORMALISATION}"

#: Vowel signs and accents that stand apart from their letter: Latin, Hebrew, Arabic, and scripts of India, whose full
# stop is no part of a word; and the joiners within words.
MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
    "\u200c\u200d"
)
#: A pattern of one word.
WORD = f"[{UNSPACED}]|(?:(?![{UNSPACED}_])[\\w{MARKS}])+"
_WORD = re.compile(WORD)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD_OR_MARK = re.compile(f"{WORD}|[^\\w\\s]")


def word_places(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each word of a text in lower case, where it begins, and where it ends.

    A word is a run of letters and digits; in scripts without spaces, a single character.
    """
    for match in _WORD.finditer(text):
        yield match[0].lower(), match.start(), match.end()


def words_of(text: str) -> list[str]:
    """Return the words of a text, normalised; see `word_places`."""
    return list(map(str.lower, _WORD.findall(normalize(text))))


def count_words(text: str) -> int:
    """Return the number of words of a text as people count them: between spaces.

    In scripts without spaces, two characters are a word.
    """
    if text.isascii():
        return len(text.split())
    spaced, unspaced = _UNSPACED.subn(" ", text)
    words = spaced.split()
    # A mark that stood between such characters is no word.
    return unspaced // 2 + sum(any(map(str.isalnum, word)) for word in words) if unspaced else len(words)


def words_and_marks(text: str) -> list[str]:
    """Return the words of a text and its punctuation marks, each mark by itself, normalised and in lower case."""
    return _WORD_OR_MARK.findall(normalize(text).lower())


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return all runs of ``n`` words in their order."""
    return list(zip(*(words[start:] for start in range(n)), strict=False))

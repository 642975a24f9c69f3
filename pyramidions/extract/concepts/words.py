"""The words that concepts consist of, as numbers."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np

from pyramidions.text.language import ENGLISH, Language

# English words that are no concept by themselves.
_STOP_WORDS = """
a about above across after again against all almost alone along already also although always am among an and another any
anyone anything are around as at be became because become been before being below between both but by can cannot could
did do does doing done down due during each either else etc even ever every few for from further get give given had has
have having he hence her here hers herself him himself his how however i if in indeed into is it its itself just least
less made many may me might more moreover most mostly much must my myself namely neither never nevertheless next no nor
not nothing now of off often on once one only or other others otherwise our ours ourselves out over own per perhaps
please rather re same see seem seemed seems several she should since so some such than that the their theirs them
themselves then there thereby therefore these they this those though three through throughout thus to together too
toward towards two under until up upon us very via was we well were what whatever when where whereas whether which while
who whom whose why will with within without would yet you your yours yourself
"""


class Words(NamedTuple):
    """Words of a language, stemmed; English ones as rouge-score has them."""

    hashes: np.ndarray  # (words,), uint32: CRC-32 of each stem
    content: np.ndarray  # (words,), bool: neither a stop word nor, where words are longer, a single character


def words_in(texts: Sequence[str], language: str = ENGLISH) -> tuple[Words, np.ndarray]:
    """Return the words of several texts, one after the other, and the number of words of each: (texts,)."""
    words = list(map(Language(language).words, texts))
    known = np.array([_known(word, language) for some in words for word in some], dtype=np.int64)
    return Words((known >> 1).astype(np.uint32), (known & 1).astype(bool)), np.array(
        list(map(len, words)), dtype=np.int64
    )


def hashes_of(text: str, language: str = ENGLISH) -> np.ndarray:
    """Return the hashes of the words of one text: (words,), uint32."""
    return words_in([text], language)[0].hashes


def _stem(word: str, language: str) -> str:
    # rouge-score leaves words of up to three characters as they are.
    return word if language == ENGLISH and len(word) <= 3 else _language(language).stem(word)


@lru_cache(maxsize=2**18)
def _known(word: str, language: str) -> int:
    """Return twice the hash of a word's stem, and 1 more for a content word."""
    known = _language(language)
    stemmed = _stem(word, language)
    says = len(stemmed) > 1 or known.tokenization == "characters"
    return crc32(stemmed.encode()) << 1 | (says and stemmed not in _stopped(language))


_language = cache(Language)


@cache
def _stopped(language: str) -> frozenset[str]:
    words = _STOP_WORDS.split() if language == ENGLISH else _language(language).stop_words
    return frozenset(_stem(word, language) for word in words)

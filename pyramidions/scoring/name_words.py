"""The words by which names and answers are compared."""

import re

from pyramidions.text.words import WORD

# A number with its separators is one word: 1,000 and 2,000 have nothing in common.
_WORD = re.compile(rf"\d+(?:[.,:/]\d+)+|{WORD}")


def words(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case, in any script."""
    return _WORD.findall(text.lower())

"""Capitals that a model does not write, from the document that its summary is of."""

import re
from collections import Counter
from functools import cached_property

from pyramidions.text.normalization import normalize, split_sentences

_WORD = re.compile(r"\w+")
#: What may stand before a capital that says nothing about the word.
_OPENS = re.compile(r"(?:^|[.!?:;\"“„(\[])\s?$")


class Casing:
    """How the words of a document are written, most often.

    A word at the beginning of a sentence tells little: the other places decide, if there are any.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def restore(self, summary: str) -> str:
        """Write the words of a summary as the document does, and capitals where sentences begin."""
        as_written = _WORD.sub(lambda word: self._forms.get(word[0], word[0]), summary)
        return " ".join(_capitalized(sentence) for sentence in split_sentences(as_written))

    @cached_property
    def _forms(self) -> dict[str, str]:
        inside: dict[str, Counter[str]] = {}
        first: dict[str, Counter[str]] = {}
        for line in map(normalize, self._text.splitlines()):
            # A heading in capitals says nothing about its words.
            for word in () if line.isupper() else _WORD.finditer(line):
                opens = _OPENS.search(line[max(0, word.start() - 3) : word.start()])
                counts = first if opens else inside
                counts.setdefault(word[0].lower(), Counter())[word[0]] += 1
        # Where a word only opens sentences, its capital may be that of any first word.
        at_first = {
            word: form
            for word, forms in first.items()
            if word not in inside and (form := forms.most_common(1)[0][0]) != word.capitalize()
        }
        return at_first | {word: forms.most_common(1)[0][0] for word, forms in inside.items()}


def _capitalized(sentence: str) -> str:
    """Begin a sentence with a capital, unless its first word has one inside, as "mRNA" does."""
    word = _WORD.search(sentence)
    if word is None or word[0] != word[0].lower():
        return sentence
    return sentence[: word.start()] + word[0][:1].upper() + sentence[word.start() + 1 :]

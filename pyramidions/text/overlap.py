"""The longest common subsequence of words: ROUGE-L of sentences."""

import re
from collections.abc import Sequence

_WORD = re.compile(r"[a-z0-9]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text: runs of a-z and 0-9 in lower case, not stemmed."""
    return _WORD.findall(text.lower())


class Recall:
    """ROUGE-L recall of one sentence by others (Lin 2004, section 3.1).

    The length of a longest common subsequence is counted in bits, all words of the sentence at a time (Hyyrö 2004):
    linear in the words of the other sentence.

    Args:
        sentence: whose words are to be found, in order.
    """

    def __init__(self, sentence: str) -> None:
        words = words_of(sentence)
        self._number = len(words)
        self._all = (1 << len(words)) - 1
        self._places: dict[str, int] = {}
        for place, word in enumerate(words):
            self._places[word] = self._places.get(word, 0) | 1 << place

    def by(self, words: Sequence[str]) -> float:
        """Return the share of the sentence's words in a longest common subsequence; 0 for a sentence without words.

        Args:
            words: of the other sentence, as `words_of` gives them.
        """
        places = self._places
        row = self._all
        for word in words:
            if (found := places.get(word)) is not None:
                hit = row & found
                # A carry beyond the sentence's last word means nothing.
                row = (row + hit | row - hit) & self._all
        return (self._number - row.bit_count()) / self._number if self._number else 0.0

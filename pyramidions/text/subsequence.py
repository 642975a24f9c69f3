"""Longest common subsequences of words, in bits."""

from collections.abc import Sequence


class Subsequences:
    """Longest common subsequences of one text with others.

    A row of the usual table is one number: the bit of a word is 0 where the subsequence grows by it, so that all words
    are looked at at a time (Hyyrö 2004). Time is linear in the words of the other text.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._all = (1 << len(words)) - 1
        self._size = len(words)
        self._places: dict[str, int] = {}
        for place, word in enumerate(words):
            self._places[word] = self._places.get(word, 0) | 1 << place

    def length(self, words: Sequence[str]) -> int:
        """Return the length of a longest common subsequence with another text."""
        row = self._all
        for word in words:
            if (places := self._places.get(word)) is not None:
                row = self._next(row, places)
        return self._size - row.bit_count()

    def recall(self, words: Sequence[str]) -> float:
        """Return the ROUGE-L recall of the one text by another (Lin 2004, section 3.1); 0 of a text without words."""
        return self.length(words) / self._size if self._size else 0.0

    def positions(self, words: Sequence[str]) -> int:
        """Return which words of the one text are in a longest common subsequence, as bits.

        Of several such subsequences it is the one that rouge-score reads out of its table from the end: it takes every
        match that it meets, and otherwise goes on in the one text where it loses nothing by that.
        """
        # Of words that the one text lacks, only the first of a run matters: it moves the end. A leading run does not.
        rows, known, row, last = [self._all], [], self._all, 0
        for word in words:
            places = self._places.get(word, 0)
            if places:
                row = self._next(row, places)
            if places or last:
                rows.append(row)
                known.append(places)
            last = places
        taken, end, at = 0, self._size, len(known)
        while at:
            # Where the table grows, or the words match; between them there is nothing to take.
            stops = (~rows[at] | known[at - 1]) & ((1 << end) - 1)
            end = stops.bit_length()
            if not end:
                break
            if known[at - 1] >> (end - 1) & 1:
                end -= 1
                taken |= 1 << end
            at -= 1
        return taken

    def _next(self, row: int, found: int) -> int:
        hit = row & found
        # A carry beyond the last word means nothing.
        return (row + hit | row - hit) & self._all

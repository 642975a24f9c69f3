"""Which sentences of a source support a sentence of its summary, by the pairs of words that they share."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from pyramidions.text.detection import detect_in_lines
from pyramidions.text.language import Language
from pyramidions.text.normalization import normalize
from pyramidions.text.words import ngrams, words_of

#: Source sentences that are named for a sentence, at most.
MOST = 3
#: Below this share of its pairs of words a sentence is without support. In the test split of SumPubMed, 82% of the
#: sentences of abstracts have that much in their own paper, 2% in another one; in QMSum, whose answers put meetings
#: into other words, 68% and, in the next meeting, 21%.
THRESHOLD = 0.25

_THOUSANDS, _DECIMAL = re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), re.compile(r"(?<=\d)[.,](?=\d)")
# What joins parts of a word, and is none of the text.
_JOINER = "\u200c"


class Support(NamedTuple):
    """What supports a sentence."""

    # Indices of source sentences: the one that contains most of its pairs of words, then those that add most, `MOST` at
    # most.
    sentences: tuple[int, ...]
    pairs: tuple[int, ...]  # how many of its pairs of words each of these adds
    total: int  # how many it has, at least 1

    @property
    def shares(self) -> list[tuple[int, float]]:
        """Each of the sentences, and what it adds as a share of all pairs."""
        return [(sentence, pairs / self.total) for sentence, pairs in zip(self.sentences, self.pairs, strict=True)]

    @property
    def recall(self) -> float:
        """ROUGE-2 recall of the sentence by all these sentences, no pair across two of them."""
        return sum(self.pairs) / self.total

    @property
    def is_enough(self) -> bool:
        """Return whether the sentence counts as supported."""
        return self.recall >= THRESHOLD


class SupportIndex:
    """Finds what supports the sentences of summaries of one source; its language is detected if it is None.

    Pairs of two stop words, such as "of the", do not count: any document holds them. A number is one word.
    """

    def __init__(self, sentences: Sequence[str], language: str | None = None) -> None:
        self._stop_words = Language(language or detect_in_lines(sentences)).stop_words
        self._places: dict[tuple[str, ...], dict[int, int]] = {}
        for index, sentence in enumerate(sentences):
            for pair, count in self._pairs(sentence).items():
                self._places.setdefault(pair, {})[index] = count

    def _pairs(self, sentence: str) -> Counter[tuple[str, ...]]:
        text = _DECIMAL.sub(_JOINER, _THOUSANDS.sub("", normalize(sentence)))
        words = words_of(text)
        return Counter(pair for pair in ngrams(words, 2) if not self._stop_words.issuperset(pair))

    def support(self, sentence: str) -> Support | None:
        """Return what supports a sentence; None if no pair of its words counts, since nothing can be said then.

        Source sentences are chosen greedily by ROUGE-2 recall (Lin, 2004); of equal ones the first.
        """
        missing = self._pairs(sentence)
        total = missing.total()
        if not total:
            return None
        chosen: dict[int, int] = {}
        while len(chosen) < MOST and (gains := self._gains(missing, chosen)):
            best = min(gains, key=lambda index: (-gains[index], index))
            chosen[best] = gains[best]
            # Subtraction keeps what is above 0.
            missing -= Counter({pair: self._places.get(pair, {}).get(best, 0) for pair in missing})
        return Support(tuple(chosen), tuple(chosen.values()), total)

    def _gains(self, missing: Counter[tuple[str, ...]], chosen: Collection[int]) -> Counter[int]:
        """Count the missing pairs of each source sentence that is not chosen yet, leaving out sentences with none."""
        gains: Counter[int] = Counter()
        for pair, count in missing.items():
            for index, there in self._places.get(pair, {}).items():
                if index not in chosen:
                    gains[index] += min(count, there)
        return gains

"""Which sentences of a source support a sentence of its summary, by the pairs of words that they share."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Supporting(NamedTuple):
    """A sentence of the document.

    Attributes:
        text: on one line.
        start, end: its place, in what the document was cut into: tokens, or sentences.
        share: of the pairs of words of the summary's sentence, what this one adds to those before it; or the share of
            its attention that goes here; or the probability that a classifier gives.
    """

    text: str
    start: int
    end: int
    share: float


@dataclass(frozen=True)
class SummarySentence:
    """A sentence of a summary, and what supports it in the document.

    Attributes:
        text: on one line.
        recall: ROUGE-2 recall by ``by_words``, no pair across two of them; None where no pair of its words counts.
        by_words: the sentences of the document that share most of its pairs of words, `MOST` at most.
        by_attention: those that got most of the decoder's attention, carried back through the poolings, likewise; None
            where that is unknown.
        missing: its numbers and its names that the document does not hold, if they were looked for. A name is a word
            with a capital; of the first word of a sentence, and in German, whose nouns have one, a capital behind its
            first letter.
        entailment, contradiction: the sentence of the document that a classifier finds to entail, or to contradict, it
            most; None without one.
    """

    text: str
    recall: float | None = None
    by_words: tuple[Supporting, ...] = ()
    by_attention: tuple[Supporting, ...] | None = None
    missing: tuple[str, ...] = ()
    entailment: Supporting | None = None
    contradiction: Supporting | None = None

    @property
    def is_supported(self) -> bool | None:
        """Whether ``recall`` is enough; None where no pair counts."""
        return None if self.recall is None else self.recall >= THRESHOLD

    @property
    def told(self) -> str:
        """How much of it has support."""
        if self.recall is None:
            return "too short to tell"
        return f"{self.recall:.0%}" + ("" if self.is_supported else ", without support")

    def to_dict(self, place: Callable[[Supporting], dict[str, Any]] = lambda _: {}) -> dict[str, Any]:
        """Return its support by words as values that JSON holds; ``place`` tells more of each sentence."""
        return {
            "sentence": self.text,
            "supported": self.is_supported,
            "recall": None if self.recall is None else round(self.recall, 4),
            "by_words": listed(self.by_words, place),
        }


def listed(
    supporting: Iterable[Supporting], place: Callable[[Supporting], dict[str, Any]] = lambda _: {}
) -> list[dict[str, Any]]:
    """Return sentences of the document as values that JSON holds."""
    return [{"sentence": each.text, **place(each), "share": round(each.share, 4)} for each in supporting]


class SupportIndex:
    """Finds what supports the sentences of summaries of one source.

    Pairs of two stop words, such as "of the", do not count: any document holds them. A number is one word. Where each
    sentence of the source starts and ends, ``places``, is counted in sentences by default.
    """

    def __init__(
        self,
        sentences: Sequence[str],
        language: str | None = None,
        places: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self._sentences = sentences
        self._spans = [(at, at + 1) for at in range(len(sentences))] if places is None else places
        self._stop_words = Language(language or detect_in_lines(sentences)).stop_words
        self._places: dict[tuple[str, ...], dict[int, int]] = {}
        for index, sentence in enumerate(sentences):
            for pair, count in self._pairs(sentence).items():
                self._places.setdefault(pair, {})[index] = count

    def _pairs(self, sentence: str) -> Counter[tuple[str, ...]]:
        text = _DECIMAL.sub(_JOINER, _THOUSANDS.sub("", normalize(sentence)))
        words = words_of(text)
        return Counter(pair for pair in ngrams(words, 2) if not self._stop_words.issuperset(pair))

    def support(self, sentence: str) -> SummarySentence:
        """Look for a sentence of a summary; of one without a pair of words that counts, nothing can be said.

        Source sentences are chosen greedily by ROUGE-2 recall (Lin, 2004): the one that contains most of its pairs of
        words, then those that add most; of equal ones the first.
        """
        missing = self._pairs(sentence)
        total = missing.total()
        if not total:
            return SummarySentence(sentence)
        chosen: dict[int, int] = {}
        while len(chosen) < MOST and (gains := self._gains(missing, chosen)):
            best = min(gains, key=lambda index: (-gains[index], index))
            chosen[best] = gains[best]
            # Subtraction keeps what is above 0.
            missing -= Counter({pair: self._places.get(pair, {}).get(best, 0) for pair in missing})
        by_words = (
            Supporting(self._sentences[index], *self._spans[index], pairs / total) for index, pairs in chosen.items()
        )
        return SummarySentence(sentence, sum(chosen.values()) / total, tuple(by_words))

    def _gains(self, missing: Counter[tuple[str, ...]], chosen: Collection[int]) -> Counter[int]:
        """Count the missing pairs of each source sentence that is not chosen yet, leaving out sentences with none."""
        gains: Counter[int] = Counter()
        for pair, count in missing.items():
            for index, there in self._places.get(pair, {}).items():
                if index not in chosen:
                    gains[index] += min(count, there)
        return gains

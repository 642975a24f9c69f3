"""Span corruption: parts of a text are replaced by sentinels, or marked by them, and a model writes the parts."""

from typing import NamedTuple

import numpy as np

#: stands for a span; no text has it but where a character is unknown
SENTINEL = 3


class SpanNoise(NamedTuple):
    """How much of a text is corrupted (Raffel et al. 2020, section 3.3.4).

    Attributes:
        share: of its tokens.
        mean: tokens of a span.
        copies: whether a span stays in the text, between two sentinels, so that it can be copied. Not in the paper.
    """

    share: float
    mean: float
    copies: bool = False

    def counts(self, length: int) -> tuple[int, int]:
        """Return how many of ``length`` tokens, at least 2, are corrupted, and in how many spans."""
        corrupted = min(max(round(length * self.share), 1), length - 1)
        spans = min(max(round(corrupted / self.mean), 1), corrupted, length - corrupted)
        return corrupted, spans

    def sizes(self, length: int) -> tuple[int, int]:
        """Return the tokens of source and target of ``length`` tokens, without what ends them."""
        corrupted, spans = self.counts(length)
        return (length + 2 * spans if self.copies else length - corrupted + spans), corrupted + spans

    def longest(self, source: int, target: int) -> int:
        """Return the most tokens whose source and target fit; 0 if not even those of 2 do."""
        # The source grows or stays with each further token, and so does the target.
        low, high = 1, 2 * (source + target)
        while high - low > 1:
            middle = (low + high) // 2
            sizes = self.sizes(middle)
            low, high = (middle, high) if sizes[0] <= source and sizes[1] <= target else (low, middle)
        return low if low > 1 else 0

    def corrupt(self, tokens: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Replace random spans by `SENTINEL`, or put one before and one behind each.

        All ways to cut the corrupted tokens into spans, and the others into what lies between, are equally likely. The
        text begins with a token that is not corrupted.

        Args:
            tokens: (L,), at least 2.
            random: draws the spans.

        Returns:
            What is left, with a sentinel for each span, or the text with its spans marked; and each span behind a
            sentinel.
        """
        corrupted, spans = self.counts(len(tokens))
        kept_parts = _partition(len(tokens) - corrupted, spans, random)
        lost_parts = _partition(corrupted, spans, random)
        source: list[np.ndarray] = []
        target: list[np.ndarray] = []
        sentinel, place = np.array([SENTINEL], dtype=tokens.dtype), 0
        for kept, lost in zip(kept_parts, lost_parts, strict=True):
            span = tokens[place + kept : place + kept + lost]
            source += [tokens[place : place + kept], sentinel, *((span, sentinel) if self.copies else ())]
            target += [sentinel, span]
            place += kept + lost
        return np.concatenate(source), np.concatenate(target)


def _partition(total: int, parts: int, random: np.random.Generator) -> list[int]:
    """Cut ``total`` into so many parts of at least 1, all ways equally likely."""
    cuts = np.sort(random.choice(total - 1, parts - 1, replace=False)) + 1
    lengths: list[int] = np.diff([0, *cuts, total]).tolist()
    return lengths

"""Whether a document and its summary belong together."""

from collections.abc import Iterable
from itertools import islice

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.extract.concepts.words import words_in
from pyramidions.text.detection import detect_language

#: Documents by which a threshold is found, at most and at least.
MOST, LEAST = 500, 20
#: Percentile of the coverage by other documents, which a document must exceed to count as that of its summary.
PERCENTILE = 95


def stems(text: str, language: str | None = None) -> frozenset[int]:
    """Return the hashes of the stems of a text, without stop words; None tells the language by the text."""
    words, _ = words_in([text], language or detect_language(text))
    return frozenset(words.hashes[words.content].tolist())


def covered(summary: frozenset[int], document: frozenset[int]) -> float:
    """Return the share of the stems of a summary that a document holds; 1 for a summary without any."""
    return len(summary & document) / len(summary) if summary else 1.0


def alignment(document: str, summary: str, language: str | None = None) -> float:
    """Return how far a document covers its summary; None tells the language by the document."""
    language = language or detect_language(document)
    return covered(stems(summary, language), stems(document, language))


def least_alignment(pairs: Iterable[tuple[str, str]], language: str | None = None) -> float:
    """Return the 95th percentile of how far documents cover the summary of another one."""
    read = list(islice(pairs, MOST))
    if len(read) < LEAST:
        raise UserError(
            f"`keep_aligned` needs at least {LEAST} train documents to find a threshold by, but there are {len(read)}."
        )
    languages = [language or detect_language(document) for document, _ in read]
    documents = [stems(document, code) for (document, _), code in zip(read, languages, strict=True)]
    summaries = [stems(summary, code) for (_, summary), code in zip(read, languages, strict=True)]
    # The other document is half of these away, since neighbours may be about one thing.
    away = len(read) // 2
    others = documents[away:] + documents[:away]
    shares = [covered(*pair) for pair in zip(summaries, others, strict=True) if pair[0]]
    found = float(np.percentile(shares, PERCENTILE)) if shares else 1.0
    if found >= 1:
        raise UserError("`keep_aligned` finds no threshold: unrelated documents cover whole summaries, too.")
    return found

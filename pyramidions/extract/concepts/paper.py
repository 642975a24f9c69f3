"""A document as what concepts are made of: numbered words, and what is known of its sentences."""

from typing import NamedTuple

import numpy as np

from pyramidions.extract.concepts.words import Words, hashes_of, words_in
from pyramidions.extract.fitness import fit_for_summary, lengths_of
from pyramidions.extract.hiporank import HipoRank
from pyramidions.text.language import ENGLISH
from pyramidions.text.outline import Outline

#: Kinds of sections by words of their headings.
SECTION_KINDS = (
    "method methods methodology materials procedures experimental",
    "result results findings",
    "discussion",
    "conclusion conclusions summary outlook",
)
_LEAST_WORDS = 4  # of a sentence that may be selected


class Paper(NamedTuple):
    """A document."""

    words: Words  # of all sentences, one after the other
    sizes: np.ndarray  # (sentences,): words of each, as rouge-score counts
    lengths: np.ndarray  # (sentences,): words of each, as budgets count
    sections: np.ndarray  # (sentences,): number of the section of each, not falling
    kinds: np.ndarray  # (sections,): index into `SECTION_KINDS`, -1 for others
    headings: np.ndarray  # (words,), uint32: hashes of the words of all headings
    # (sentences,): the share of the sentences that HipoRank ranks below each; of those that no summary should hold, 0.
    centrality: np.ndarray
    fit: np.ndarray  # (sentences,), bool: may be selected

    @property
    def sentence(self) -> np.ndarray:
        """The sentence of each word: (words,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def paper_of(outline: Outline, language: str = ENGLISH) -> Paper:
    """Return a document of at least one sentence in numbers; the language says what its words are."""
    texts = list(outline.texts)
    words, sizes = words_in(texts, language)
    scores = fit_for_summary(outline, HipoRank().rank(outline))
    order = np.argsort(np.argsort(scores, kind="stable"), kind="stable") / max(len(texts), 1)
    _, sections = np.unique(np.array(outline.sentences.sections), return_inverse=True)
    named = np.unique(np.array(outline.sentences.sections))
    return Paper(
        words,
        sizes,
        np.array(lengths_of(outline), dtype=np.int64),
        sections,
        np.array([_kind(outline.headings[section]) for section in named], dtype=np.int64),
        np.unique(hashes_of(" ".join(outline.headings), language)),
        np.where(scores > -np.inf, order, 0.0),
        (scores > -np.inf) & (sizes >= _LEAST_WORDS),
    )


def _kind(heading: str) -> int:
    words = hashes_of(heading)
    return next((kind for kind, known in enumerate(SECTION_KINDS) if np.isin(words, hashes_of(known)).any()), -1)

"""Which sentences of a document can stand in a summary at all."""

import re

import numpy as np

from pyramidions.text.outline import Outline

LEAST_WORDS = 3
_BACK_MATTER = re.compile(
    r"\W*(\d+\.?\s+)?(references|bibliography|works cited|acknowledge?ments?|(licen[cs]e|copyright)( notice)?)\W*",
    re.IGNORECASE,
)


def fit_for_summary(outline: Outline, scores: np.ndarray) -> np.ndarray:
    """Return scores in which sentences that no summary should hold have -inf.

    These are fragments of fewer than `LEAST_WORDS` words with a letter (a label, a page number, what is left of a
    formula), sentences that repeat an earlier one word by word, and those of references, acknowledgements and licences.
    If a document has no others, the scores stay as they are.

    Args:
        outline: of the document.
        scores: (sentences,), of its sentences.
    """
    back = [_BACK_MATTER.fullmatch(heading) is not None for heading in outline.headings]
    hashes = np.empty(len(scores), dtype=np.int64)  # a set of texts would take many times their memory
    fit = np.zeros(len(scores), dtype=bool)
    for place, (text, section) in enumerate(zip(outline.texts, outline.sentences.sections, strict=True)):
        spelt = text.casefold()
        fit[place] = not back[section] and _words(spelt) >= LEAST_WORDS
        hashes[place] = hash(spelt)
    # The first of equal ones stays in front.
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    fit[order[1:][hashes[1:] == hashes[:-1]]] = False
    fitting = np.where(fit, scores, -np.inf)
    return fitting if (fitting > -np.inf).any() else scores


def _words(sentence: str) -> int:
    return sum(any(map(str.isalpha, word)) for word in sentence.split())

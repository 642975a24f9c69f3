"""Which method suits a document, for `auto`."""

from functools import cache

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.extract.concepts import load_concepts
from pyramidions.extract.concepts.features import ORDERS, Frequencies, keys_of
from pyramidions.extract.concepts.words import words_in
from pyramidions.extract.methods import HIPORANK, find_method
from pyramidions.text.language import ENGLISH
from pyramidions.text.outline import Outline

BIOMEDICAL, MEETINGS = "biomedical", "meetings"
#: Sentences of a document that are looked at; the share of known pairs falls with their number.
_LOOKED_AT = 64
#: Different pairs of content words in a document, below which their share says little: a paragraph or two.
_LEAST_PAIRS = 100
#: Share of its pairs of content words that `biomedical` must know: 586 of 600 validation papers have it, and one of 117
#: other texts, an article on statistics.
_KNOWN = 0.43
#: Share that it must know before words are stemmed; none of those papers has less, and most other texts have.
_KNOWN_UNSTEMMED = 0.045


@checked
def suited(outline: Outline) -> str:
    """Return the method for a document: a model where it was trained on documents of its kind, else HipoRank.

    An English dialogue suits `meetings`. Another English text suits `biomedical` if enough of its pairs of neighbouring
    content words are known from biomedical papers.
    """
    if outline.language != ENGLISH or not outline.sentences:
        return HIPORANK
    if outline.speakers:
        return MEETINGS
    # The stemmer takes seconds to load.
    may_suit = known_pairs(outline, stems=False) >= _KNOWN_UNSTEMMED
    return BIOMEDICAL if may_suit and known_pairs(outline) >= _KNOWN else HIPORANK


@checked
def known_pairs(outline: Outline, stems: bool = True) -> float:
    """Return the share of the different pairs of content words in a document's sentences that `biomedical` knows.

    0 where they are too few to tell. Without ``stems``, only words count as known that are stems themselves.
    """
    places = np.unique(np.linspace(0, len(outline.texts) - 1, _LOOKED_AT).round().astype(int))
    texts = [outline.texts[at] for at in places.tolist()]
    words, sizes = words_in(texts, stems=stems)
    keys, places = keys_of(words, ORDERS[1], np.repeat(np.arange(len(texts)), sizes))
    both = words.content[places] & words.content[places + 1]
    seen, _ = _biomedical_pairs().of(np.unique(keys[both]))
    return float((seen > 0).mean()) if len(seen) >= _LEAST_PAIRS else 0.0


@cache
def _biomedical_pairs() -> Frequencies:
    folder = find_method(BIOMEDICAL, "method").concepts
    assert folder is not None
    return load_concepts(folder).known[1]

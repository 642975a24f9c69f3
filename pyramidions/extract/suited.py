"""Which method suits a document, for `auto`."""

import re
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
#: Share of its pairs of content words that `biomedical` must know, and for how much of it a share of sentences with
#: biomedical terms counts, where it is above the usual one. 583 of 600 validation papers have it, 76 of 106 papers of
#: PLOS, and four of 147 other texts: an article on a disease, and three on machine learning.
_KNOWN, _WORTH, _USUAL = 0.43, 0.4, 0.2
#: Share of sentences with such terms that it must have before words are stemmed.
_FEWEST = 0.04
# Beginnings of words of biomedical papers that are rare elsewhere.
_TERM = re.compile(
    r"\b(?:acute|allel|amino|antibod|antigen|assay|bacteri|biomarker|blood|bone|brain|cancer|carcinoma|cardi|cells?\b|"
    r"cellular|chromosom|chronic|clinic|cohort|diagnos|disease|dna|dos(?:e|age)|drug|enzyme|epidemiolog|fluorescen|"
    r"gene(?:s|tic)?\b|genom|genotyp|glucose|hepat|histolog|hospital|immun|incubat|infant|infect|inflammat|insulin|"
    r"kidney|kinase|lesion|lipid|liver|lung|membran|metabol|mice|molecul|morbidity|mortality|mouse|mrna|muscle|muta(?:nt|"
    r"tion)|neuro|nucle|nurs|pathogen|patient|pcr|peptid|phenotyp|placebo|plasma|polymorphism|pregnan|prevalence|protein|"
    r"pulmonary|rats|receptor|renal|rna|serum|species|surg|symptom|syndrome|therap|tissue|transcript|treatment|tumou?r|"
    r"vaccin|vascular|vir(?:us|al)|vitro|vivo)"
)


@checked
def suited(outline: Outline) -> str:
    """Return the method for a document: a model where it was trained on documents of its kind, else HipoRank.

    An English dialogue suits `meetings`. Another English text suits `biomedical` if enough of its pairs of neighbouring
    content words are known from biomedical papers; fewer are enough where many of its sentences have biomedical terms.
    """
    if outline.language != ENGLISH or not outline.sentences:
        return HIPORANK
    if outline.speakers:
        return MEETINGS
    places = np.unique(np.linspace(0, len(outline.texts) - 1, _LOOKED_AT).round().astype(int))
    texts = [outline.texts[at] for at in places.tolist()]
    of_field = sum(_TERM.search(text.lower()) is not None for text in texts) / len(texts)
    # The stemmer takes seconds to load.
    if of_field < _FEWEST or not (known := _known_pairs(texts)):
        return HIPORANK
    return BIOMEDICAL if known + _WORTH * max(0.0, of_field - _USUAL) >= _KNOWN else HIPORANK


def _known_pairs(texts: list[str]) -> float:
    """Return the share of the different pairs of content words in sentences that `biomedical` knows.

    0 where they are too few to tell.
    """
    words, sizes = words_in(texts)
    keys, places = keys_of(words, ORDERS[1], np.repeat(np.arange(len(texts)), sizes))
    both = words.content[places] & words.content[places + 1]
    seen, _ = _biomedical_pairs().of(np.unique(keys[both]))
    return float((seen > 0).mean()) if len(seen) >= _LEAST_PAIRS else 0.0


@cache
def _biomedical_pairs() -> Frequencies:
    folder = find_method(BIOMEDICAL, "method").concepts
    assert folder is not None
    return load_concepts(folder).known[1]

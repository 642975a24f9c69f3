"""Part of speech and named entity of each word, by a spaCy pipeline on this machine."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.text.tokenizer.sentencepiece import NAME_END_SURFACE

#: Universal parts of speech, and the entities of OntoNotes and WikiNER. A tag is a pair of their numbers from 1; 0 is
#: none, and the last entity is any other.
_UNIVERSAL = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
_ONTONOTES = "CARDINAL DATE EVENT FAC GPE LANGUAGE LAW LOC MONEY NORP ORDINAL ORG PERCENT PERSON PRODUCT QUANTITY TIME"
PART_NAMES = tuple(_UNIVERSAL.split())
ENTITY_NAMES = (*_ONTONOTES.split(), "WORK_OF_ART", "PER", "MISC", "other")
#: Number of pairs.
NUM_TAGS = (1 + len(PART_NAMES)) * (1 + len(ENTITY_NAMES))
_PART = {name: number for number, name in enumerate(PART_NAMES, 1)}
_ENTITY = {"": 0} | {name: number for number, name in enumerate(ENTITY_NAMES, 1)}


@cache
def pipeline(name: str) -> Any:
    """Load a spaCy pipeline: its folder, or an installed package. Nothing is downloaded."""
    spacy = optional_library("spacy", "--tags", extra="tags")
    try:
        loaded = spacy.load(name)
    except Exception as error:
        # Damaged pipelines raise anything.
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"`tags` must be a spaCy pipeline on this machine, but {name} is none: {reason}") from None
    loaded.max_length = 2**40  # parsers alone need much memory for long texts
    return loaded


def about_pipeline(name: str) -> dict[str, str]:
    """Return what a manifest says of a pipeline: language, name and version."""
    meta = pipeline(name).meta
    return {key: str(meta[key]) for key in ("lang", "name", "version")}


def word_tags(surfaces: Sequence[str], name: str) -> np.ndarray:
    """Return the tag of the word that each token of a text begins in, below `NUM_TAGS`; 0 for markers: (tokens,).

    Tokens are those of `Tokenizer.surfaces`; sentences or lines begin at empty ones.
    """
    units: list[list[int]] = [[]]
    spelt = [surface.replace(NAME_END_SURFACE, "") for surface in surfaces]
    for place, surface in enumerate(surfaces):
        if not surface:
            units.append([])
        units[-1].append(place)
    tags = np.zeros(len(surfaces), np.uint32)
    texts = ("".join(spelt[place] for place in unit) for unit in units)
    for unit, doc in zip(units, pipeline(name).pipe(texts), strict=True):
        of = np.zeros(len(doc.text) + 1, np.uint32)
        for token in doc:
            entity = _ENTITY.get(token.ent_type_, len(ENTITY_NAMES))
            of[token.idx : token.idx + len(token)] = _PART.get(token.pos_, 0) * (1 + len(ENTITY_NAMES)) + entity
        at = 0
        for place in unit:
            surface = spelt[place]
            # A token spells the space before it.
            tags[place] = of[at + len(surface) - len(surface.lstrip())] if surface.strip() else 0
            at += len(surface)
    return tags

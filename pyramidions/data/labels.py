"""Labels of sentences: those that the greedy oracle chooses to summarize their document."""

from typing import NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.readers import Document
from pyramidions.extract.oracle import oracle
from pyramidions.text.normalization import normalize
from pyramidions.text.outline import Unit, outline
from pyramidions.text.tokenizer import SENTENCE_MARKER, Tokenizer

HEADING, SENTENCE, CHOSEN = range(3)
NUM_LABELS = 3


class LabelledSource(NamedTuple):
    """A document as ids with markers, and with a label for each unit."""

    ids: list[int]  # without `</s>`
    # One of `HEADING`, `SENTENCE` and `CHOSEN` for each unit of the document's outline, in its order.
    labels: np.ndarray


def labelled(document: Document, tokenizer: Tokenizer) -> LabelledSource:
    """Encode the headings and sentences of a document, and label them.

    A document without sentences has headings alone. The oracle (Nallapati et al. 2017) chooses none where no sentence
    shares a word with the summary.
    """
    found = outline(document.source, language=document.language)
    # Heading signs without any text are no heading.
    units = found.units or (Unit(normalize(document.source), 0),)
    labels = np.array([HEADING if unit.is_heading else SENTENCE for unit in units], np.uint8)
    sentences = np.flatnonzero(labels == SENTENCE)
    chosen = oracle([units[number].text for number in sentences.tolist()], document.target, found.language)
    labels[sentences[chosen]] = CHOSEN
    return LabelledSource(tokenizer.encode_units([unit.text for unit in units]), labels)


def require_marker(tokenizer: Tokenizer, name: object) -> None:
    """Raise a UserError if a tokenizer to reuse has no sentence marker."""
    if tokenizer.marker_id is None:
        raise UserError(
            f"Labels need a tokenizer with the piece {SENTENCE_MARKER} before sentences, but {name} has none; train "
            "one with --sentence-markers."
        )

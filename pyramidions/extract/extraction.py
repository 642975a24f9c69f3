"""What an extraction finds."""

from typing import NamedTuple

import numpy as np

from pyramidions.extract.fitness import fit_for_summary
from pyramidions.extract.selection import SelectionRules, select
from pyramidions.text.outline import Outline


class Extract(NamedTuple):
    """An extracted sentence.

    Attributes:
        text: normalised.
        position: of the sentence in the document, from 0; headings are not counted.
        section: its heading, "" before the first.
        score: as the method gave it; comparable within a document.
    """

    text: str
    position: int
    section: str
    score: float


class Extraction(NamedTuple):
    """The extractive summary of a document.

    Attributes:
        sentences: that were extracted, in reading order.
        outline: of the whole document.
        scores: (sentences,), of all sentences of the document.
    """

    sentences: list[Extract]
    outline: Outline
    scores: np.ndarray

    @property
    def text(self) -> str:
        """The summary on one line."""
        return " ".join(sentence.text for sentence in self.sentences)


def extract(outline: Outline, scores: np.ndarray, rules: SelectionRules) -> Extraction:
    """Extract sentences of a document, of those that `fit_for_summary` lets pass.

    Args:
        outline: of the document.
        scores: (sentences,), as a `Ranker` gives them.
        rules: of the selection.

    Returns:
        The extraction; without any sentence if the document has none.

    Raises:
        UserError, ValueError: as `select`.
    """
    sentences = outline.sentences
    chosen = select([sentence.text for sentence in sentences], fit_for_summary(outline, scores), rules)
    found = [
        Extract(sentences[place].text, place, outline.headings[sentences[place].section], float(scores[place]))
        for place in chosen
    ]
    return Extraction(found, outline, scores)

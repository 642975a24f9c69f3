"""A made-up extraction, for tests of what is shown of it."""

import numpy as np

from pyramidions.extract.extraction import Extract, Extraction
from pyramidions.text.outline import Outline, Unit

#: Before the first section, in one with a subsection, and in one without text.
UNITS = (
    Unit("A title", 0, is_heading=True),
    Unit("Genes matter.", 0),
    Unit("Methods", 1, is_heading=True),
    Unit("Cells were <b>cut</b>.", 1),
    Unit("They were counted twice.", 1),
    Unit("Statistics", 1, is_heading=True),
    Unit("A test was made.", 1),
    Unit("It was fair.", 1),
    Unit("Results", 2, is_heading=True),
    Unit("Genes map to loci.", 2),
    Unit("Acknowledgements", 3, is_heading=True),
)
HEADINGS = ("", "Methods", "Results", "Acknowledgements")
SCORES = (0.25, -np.inf, 1.5, 0.25, 0.125, 3.0000004)


def example(units: tuple[Unit, ...] = UNITS, chosen: tuple[int, ...] = (2, 5)) -> Extraction:
    """Return an extraction of six sentences, two of which were chosen."""
    outline = Outline(units, HEADINGS)
    return extraction(outline, np.array(SCORES), chosen)


def long(sections: int, sentences: int, chosen: tuple[int, ...]) -> Extraction:
    """Return an extraction of sections of the same length; scores are the numbers 0, 7, 14 ... modulo 101."""
    units = [
        Unit(f"Section {section}", section, is_heading=True)
        if place < 0
        else Unit(f"Sentence {section}.{place} says that genes map to loci.", section)
        for section in range(sections)
        for place in range(-1, sentences)
    ]
    outline = Outline(tuple(units), tuple(f"Section {section}" for section in range(sections)))
    return extraction(outline, np.arange(sections * sentences) * 7.0 % 101, chosen)


def extraction(outline: Outline, scores: np.ndarray, chosen: tuple[int, ...]) -> Extraction:
    """Return the extraction of given sentences."""
    sentences = outline.sentences
    found = [
        Extract(sentences[at].text, at, outline.headings[sentences[at].section], float(scores[at])) for at in chosen
    ]
    return Extraction(found, outline, scores)

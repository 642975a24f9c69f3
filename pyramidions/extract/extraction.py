"""What an extraction finds."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from pyramidions.base.results import as_html, brief
from pyramidions.extract.fitness import as_extracted, fit_for_summary, lengths_of
from pyramidions.extract.selection import SelectionRules, select
from pyramidions.text.outline import Outline
from pyramidions.text.turns import spoken


class Extract(NamedTuple):
    """An extracted sentence.

    Attributes:
        text: on one line, without marks of citations that a corpus took out (`<cit>`), notes, and entries of lists.
        position: of the sentence in the document, from 0; headings are not counted.
        section: its heading, "" before the first.
        score: as the method gave it; comparable within a document.
        speaker: who says it in a dialogue; "" in any other document.
    """

    text: str
    position: int
    section: str
    score: float
    speaker: str = ""


class Extraction(NamedTuple):
    """The extractive summary of a document.

    Attributes:
        sentences: those extracted, in reading order.
        outline: of the whole document.
        scores: (sentences,), of all sentences of the document.

    It equals itself alone, as all results that hold arrays; compare what `to_dict` returns.
    """

    sentences: list[Extract]
    outline: Outline
    scores: np.ndarray

    @property
    def text(self) -> str:
        """The summary on one line; of a dialogue with each speaker before what he or she says."""
        return " ".join(said(self.sentences))

    @property
    def summary(self) -> str:
        """`text`, by the name that it has in `to_dict` and in files."""
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return summary, language and sentences as values that JSON holds; the speaker of a dialogue alone."""
        values = [sentence._asdict() for sentence in self.sentences]
        if not self.outline.speakers:
            for each in values:
                del each["speaker"]
        return {"summary": self.text, "language": self.outline.language, "sentences": values}

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return brief(self, f"{len(self.sentences)} of {len(self.scores)} sentences")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summary by section, [...] between sentences that stand apart."""
        return as_html(self.by_section())

    def by_section(self) -> Iterator[tuple[str, str]]:
        """Yield the heading of each section that has a sentence, and its sentences, [...] between distant ones."""
        for section, group in groupby(self.sentences, lambda sentence: sentence.section):
            extracts = list(group)
            first, *others = said(extracts)
            gaps = ("" if each.position == last.position + 1 else "[...] " for last, each in pairwise(extracts))
            yield section, " ".join([first, *(f"{gap}{text}" for gap, text in zip(gaps, others, strict=True))])


def said(sentences: Sequence[Extract]) -> Iterator[str]:
    """Yield extracted sentences, each speaker before what he or she says."""
    return spoken((each.speaker, each.text) for each in sentences)


def extract(outline: Outline, scores: np.ndarray, rules: SelectionRules) -> Extraction:
    """Extract the sentences with the highest scores, (sentences,), that are fit for a summary (`fit_for_summary`).

    The rules bound their words, which are counted with speakers and without citations, and say what becomes of
    repetitions.
    """
    chosen = select(outline.texts, fit_for_summary(outline, scores), rules, lengths_of(outline), outline.language)
    return extraction_of(outline, scores, chosen)


def extraction_of(outline: Outline, scores: np.ndarray, chosen: Sequence[int]) -> Extraction:
    """Return the extraction of some sentences of a document, which are in reading order."""
    sentences = [
        Extract(
            as_extracted(outline.texts[place]),
            place,
            outline.headings[outline.sentences[place].section],
            float(scores[place]),
            outline.speakers[place] if outline.speakers else "",
        )
        for place in chosen
    ]
    return Extraction(sentences, outline, scores)

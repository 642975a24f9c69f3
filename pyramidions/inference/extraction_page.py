"""Shows extractions on an HTML page: one file that needs no network."""

import math
from collections.abc import Mapping
from typing import Any

from pyramidions.base.arguments import CountOrZero, checked
from pyramidions.extract.extraction import Extraction
from pyramidions.inference.document_page import DocumentPage
from pyramidions.pages.frame import MOST, as_json

#: most sentences of a document on a page that browsers draw at once
MOST_SENTENCES = 2**16


class ExtractionPage:
    """A page of documents and their extractive summaries, gathered one by one.

    Sentences are shaded by the rank of their score, and those of the summary are marked. Scores are rounded to six
    digits.

    Args:
        method: what to call the ranker.
        most: bytes of all documents; a document that does not fit, or has more than `MOST_SENTENCES`, is not on the
            page.
        settings: further settings by name, such as the budget.
    """

    @checked
    def __init__(self, method: str, most: CountOrZero = MOST, settings: Mapping[str, str] | None = None) -> None:
        self._page = DocumentPage("extraction_page", most)
        self._settings = {"method": method, **(settings or {})}

    @property
    def left_out(self) -> int:
        """The number of documents that are not on the page."""
        return self._page.left_out

    @checked
    def add(self, name: str, extraction: Extraction, reference: str | None = None) -> None:
        """Add a document.

        Args:
            name: of the document, its heading.
            extraction: its sentences, their scores and the summary.
            reference: a summary to compare with.
        """
        document = as_json({"name": name, **_document(extraction), "reference": reference})
        if len(extraction.scores) <= MOST_SENTENCES and self._page.reserve(document):
            self._page.add(document)
        else:
            self._page.left_out += 1

    def html(self) -> str:
        """Return the page: one file that needs no network."""
        return self._page.html({"settings": self._settings})


def _document(extraction: Extraction) -> dict[str, Any]:
    return {
        "sections": _sections(extraction),
        "scores": [float(f"{score:.6g}") if math.isfinite(score) else None for score in extraction.scores.tolist()],
        "chosen": [sentence.position for sentence in extraction.sentences],
        "words": {
            "chosen": sum(len(sentence.text.split()) for sentence in extraction.sentences),
            "all": sum(len(sentence.text.split()) for sentence in extraction.outline.sentences),
        },
    }


def _sections(extraction: Extraction) -> list[dict[str, Any]]:
    """Return the parts of each section: what stands under a heading of any level."""
    headings, units = extraction.outline.headings, extraction.outline.units
    sections: list[dict[str, Any]] = [
        {"heading": heading, "parts": [{"heading": "", "sentences": []}]} for heading in headings
    ]
    begun = -1
    for unit in units:
        parts = sections[unit.section]["parts"]
        opens_section = unit.section != begun and unit.text == headings[unit.section]
        begun = unit.section
        if not unit.is_heading:
            parts[-1]["sentences"].append(unit.text)
        elif not opens_section:
            parts.append({"heading": unit.text, "sentences": []})
    return sections

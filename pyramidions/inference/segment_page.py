"""Shows segments on an HTML page: one file that needs no network."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyramidions.base.arguments import CountOrZero, checked
from pyramidions.inference.document_page import DocumentPage
from pyramidions.inference.segmenter import SegmentedText
from pyramidions.pages.frame import MOST, as_json

#: most characters of a text on a page that browsers draw at once
MOST_CHARACTERS = 2**18
#: segments that the page lists with their counts
FREQUENT = 60


class SegmentPage:
    """A page of texts and their segments, gathered one by one.

    Characters are shaded by the probability of a boundary behind them, which is rounded to thousandths.

    Args:
        settings: of the model, by name.
        most: bytes of all texts. One that does not fit is not on the page; of one that is longer than
            `MOST_CHARACTERS`, the page has the beginning.
    """

    @checked
    def __init__(self, settings: Mapping[str, str], most: CountOrZero = MOST) -> None:
        self._page = DocumentPage("segment_page", most, title="Segments of texts")
        self._settings = dict(settings)

    @property
    def left_out(self) -> int:
        """The number of texts that are not on the page, or not to their end."""
        return self._page.left_out

    @checked
    def add(self, name: str, found: SegmentedText) -> None:
        """Add a text.

        Args:
            name: of the text, its heading.
            found: its segments.
        """
        text = as_json({"name": name, **_text(found)})
        has_room = self._page.reserve(text)
        if has_room:
            self._page.add(text)
        self._page.left_out += not has_room or len(found.text) > MOST_CHARACTERS

    def html(self) -> str:
        """Return the page: one file that needs no network."""
        return self._page.html({"settings": self._settings})


def _text(found: SegmentedText) -> dict[str, Any]:
    shown = slice(MOST_CHARACTERS)
    p = found.probabilities
    return {
        "text": found.text[shown],
        "ends": found.ends[shown].nonzero()[0].tolist(),
        "p": None if p is None else (p[shown] * 1000).round().astype(int).tolist(),
        "characters": len(found.text),
        "segments": len(found.segments),
        "shortening_factor": found.shortening_factor,
        "boundaries_at_spaces": found.boundaries_at_spaces,
        "spaces_at_boundaries": found.spaces_at_boundaries,
        "different": len(set(found.segments)),
        "lengths": _lengths(found),
        "frequent": found.most_frequent(FREQUENT),
        "outside": sum(found.outside.values()),
    }


def _lengths(found: SegmentedText) -> list[int]:
    """Return how many segments have one character, two, and so on."""
    counts: list[int] = np.bincount([len(segment) for segment in found.segments] or [0])[1:].tolist()
    return counts

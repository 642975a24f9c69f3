"""What the page of segments contains."""

from collections import Counter
from typing import Any

import numpy as np
from explanations import page_data

from pyramidions.inference import SegmentedText, SegmentPage, segment_page

TEXT = SegmentedText(
    "the cat the end",
    np.array([0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], bool),
    np.array([0, 0.0004, 0, 1, 0, 0.25, 0, 0.6006, 0, 0, 0, 1, 0, 0, 0.4]),
    Counter({",": 2, "é": 1}),
)


def shown(text: SegmentedText = TEXT) -> dict[str, Any]:
    page = SegmentPage({})
    page.add("a.txt", text)
    (document,) = page_data(page.html())["documents"]
    return document


def test_it_contains_the_text_its_boundaries_and_its_figures() -> None:
    assert shown() == {
        "name": "a.txt",
        "text": "the cat the end",
        "ends": [3, 7, 11],
        # Thousandths.
        "p": [0, 0, 0, 1000, 0, 250, 0, 601, 0, 0, 0, 1000, 0, 0, 400],
        "characters": 15,
        "segments": 3,
        "shortening_factor": 5.0,
        "boundaries_at_spaces": 1.0,
        "spaces_at_boundaries": 1.0,
        "different": 2,
        "lengths": [0, 0, 0, 3],
        "frequent": [["the ", 2], ["cat ", 1]],
        "outside": 3,
    }


def test_a_text_without_boundaries_has_no_figures_of_them() -> None:
    text = shown(SegmentedText("ab", np.zeros(2, bool), None, Counter()))
    assert (text["ends"], text["p"], text["lengths"], text["frequent"]) == ([], None, [], [])
    assert text["shortening_factor"] is text["boundaries_at_spaces"] is text["spaces_at_boundaries"] is None


def test_of_a_long_text_the_page_has_the_beginning_and_all_figures(monkeypatch: Any) -> None:
    monkeypatch.setattr(segment_page, "MOST_CHARACTERS", 8)
    page = SegmentPage({})
    page.add("a.txt", TEXT)
    (text,) = page_data(page.html())["documents"]
    assert (text["text"], text["ends"], len(text["p"])) == ("the cat ", [3, 7], 8)
    assert (text["characters"], text["segments"], page.left_out) == (15, 3, 1)


def test_what_does_not_fit_is_left_out_and_counted() -> None:
    page = SegmentPage({"model": "tiny"}, most=400)
    page.add("a.txt", TEXT)
    page.add("b.txt", TEXT)
    data = page_data(page.html())
    assert [text["name"] for text in data["documents"]] == ["a.txt"] and page.left_out == data["left_out"] == 1
    assert data["settings"] == {"model": "tiny"}

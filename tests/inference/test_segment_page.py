"""What the page of segments contains."""

from collections import Counter
from dataclasses import replace
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
        "about": "15 characters in 3 segments. 3 characters outside the alphabet became spaces.",
        "facts": {
            "characters a segment (shortening factor)": "5.00",
            "boundaries at spaces": "100.0%",
            "spaces at boundaries": "100.0%",
            "different segments": "2",
        },
        "segments": ["the ", "cat ", "the "],
        "blocks": [["p", 0, "1"]],
        # Thousandths; what is below 20 is joined.
        "runs": [[3, 0, 1, 1000], [1, 0, 1, 250, 1, 0, 1, 601], [3, 0, 1, 1000]],
        "predicted": True,
        "rest": ["end", [2, 0, 1, 400]],
        "items": [{"text": "the ", "note": "2 · 66.7%"}, {"text": "cat ", "note": "1 · 33.3%"}],
        "bars": [0, 0, 0, 3],
        "longest": False,
    }


def test_with_entropies_each_character_stands_apart_over_hundredths_of_a_bit() -> None:
    text = shown(replace(TEXT, entropies=np.array([4.0, 0.004, 1.239, *[0.5] * 12])))
    assert text["runs"][0] == [1, 0, 1, 0, 1, 0, 1, 1000] and text["rest"] == ["end", [1, 0, 1, 0, 1, 400]]
    assert text["bits"] == [[400, 0, 124, 50], [50] * 4, [50] * 4, [50] * 3]
    assert text["facts"]["bits of entropy a character"] == "0.75"
    some = shown(replace(TEXT, entropies=np.ones(5)))
    assert some["bits"] == [[100] * 4, [100]] and some["runs"][2] == [3, 0, 1, 1000]
    whole = replace(TEXT, ends=np.arange(15) == 14, entropies=np.ones(15))
    assert [len(bits) for bits in shown(whole)["bits"]] == [15]


def test_a_text_without_boundaries_has_no_figures_of_them() -> None:
    text = shown(SegmentedText("ab", np.zeros(2, bool), None, Counter()))
    assert (text["segments"], text["predicted"], text["bars"], text["items"]) == ([], False, [], [])
    assert list(text["facts"].values()) == ["–", "–", "–", "0"] and text["rest"] == ["ab", [1, 0, 1, 0]]
    assert text["help"] == "This model draws no boundary in this text."


def test_of_a_long_text_the_page_has_the_beginning_and_all_figures(monkeypatch: Any) -> None:
    monkeypatch.setattr(segment_page, "MOST_CHARACTERS", 8)
    page = SegmentPage({})
    page.add("a.txt", TEXT)
    (text,) = page_data(page.html())["documents"]
    assert text["segments"] == ["the ", "cat "] and page.left_out == 1
    assert text["about"].startswith("15 characters in 3 segments.")
    assert text["about"].endswith("The page shows the first 8.")


def test_what_does_not_fit_is_left_out_and_counted() -> None:
    page = SegmentPage({"model": "tiny"}, most=600)
    page.add("a.txt", TEXT)
    page.add("b.txt", TEXT)
    data = page_data(page.html())
    assert [text["name"] for text in data["documents"]] == ["a.txt"] and page.left_out == data["left_out"] == 1
    assert data["settings"] == {"model": "tiny"}

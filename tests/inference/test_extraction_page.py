"""What the page of an extraction contains."""

import re
from typing import Any

import numpy as np
import pytest
from explanations import page_data
from extractions import UNITS, example, extraction

from pyramidions.inference import ExtractionPage
from pyramidions.text.outline import Outline


def only_document(page: ExtractionPage) -> dict[str, Any]:
    (document,) = page_data(page.html())["documents"]
    return document


def test_it_contains_sections_scores_and_the_summary() -> None:
    page = ExtractionPage("hiporank")
    page.add("genes.txt", example(), "Genes and loci.")
    assert only_document(page) == {
        "name": "genes.txt",
        "sections": [
            {
                "heading": "",
                "parts": [{"heading": "", "sentences": []}, {"heading": "A title", "sentences": ["Genes matter."]}],
            },
            {
                "heading": "Methods",
                "parts": [
                    {"heading": "", "sentences": ["Cells were <b>cut</b>.", "They were counted twice."]},
                    {"heading": "Statistics", "sentences": ["A test was made.", "It was fair."]},
                ],
            },
            {"heading": "Results", "parts": [{"heading": "", "sentences": ["Genes map to loci."]}]},
            {"heading": "Acknowledgements", "parts": [{"heading": "", "sentences": []}]},
        ],
        # -inf has no number in JSON, and six digits are kept.
        "scores": [0.25, None, 1.5, 0.25, 0.125, 3.0],
        "chosen": [2, 5],
        "words": {"chosen": 8, "all": 20},
        "reference": "Genes and loci.",
    }


def test_a_subheading_that_repeats_the_heading_of_its_section_is_kept() -> None:
    units = (*UNITS[:6], UNITS[2], *UNITS[6:])
    page = ExtractionPage("lead")
    page.add("a", example(units))
    headings = [part["heading"] for part in only_document(page)["sections"][1]["parts"]]
    assert headings == ["", "Statistics", "Methods"]


def test_method_and_settings_are_named() -> None:
    page = ExtractionPage("hiporank", settings={"words": "at most 220"})
    assert page_data(page.html())["settings"] == {"method": "hiporank", "words": "at most 220"}


def test_no_document_can_break_out_of_its_place() -> None:
    evil = "</script><script>alert(1)</script><!-- @DATA@ @STYLE@ @SCRIPT@ \u2028"
    page = ExtractionPage(evil, settings={evil: evil})
    scripts = ExtractionPage("lead").html().count("<script")
    units = tuple(unit._replace(text=evil) for unit in UNITS)
    page.add(evil, extraction(Outline(units, (evil,) * 4), np.zeros(6), (0,)), evil)
    found = only_document(page)
    assert found["name"] == found["reference"] == found["sections"][0]["heading"] == evil
    assert found["sections"][2]["parts"][0]["sentences"] == [evil]
    assert page.html().count("<script") == scripts and "<!--" not in page.html()


def test_a_document_without_sentences_has_no_summary() -> None:
    page = ExtractionPage("lead")
    page.add("empty.txt", extraction(Outline((), ()), np.zeros(0), ()))
    found = only_document(page)
    assert (found["sections"], found["scores"], found["chosen"]) == ([], [], [])
    assert found["words"] == {"chosen": 0, "all": 0}


def test_a_page_holds_no_more_than_it_may_and_counts_what_it_leaves_out() -> None:
    one = ExtractionPage("lead")
    one.add("a", example())
    size = len(one.html().encode()) - len(ExtractionPage("lead").html().encode())
    page = ExtractionPage("lead", most=2 * size)
    for name in "abc":
        page.add(name, example())
    found = page_data(page.html())
    assert [document["name"] for document in found["documents"]] == ["a", "b"]
    assert found["left_out"] == page.left_out == 1


def test_a_document_of_more_sentences_than_browsers_draw_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyramidions.inference.extraction_page.MOST_SENTENCES", 6)
    page = ExtractionPage("lead")
    page.add("six", example())
    units = (*UNITS, UNITS[1]._replace(section=3))
    page.add("seven", extraction(Outline(units, ("", "Methods", "Results", "Thanks")), np.zeros(7), (0,)))
    assert only_document(page)["name"] == "six" and page.left_out == 1


def test_it_asks_nothing_of_the_network() -> None:
    page = ExtractionPage("lead")
    page.add("a", example())
    assert "default-src 'none'" in page.html()
    assert not re.search(r"https?:|src=|url\(|@import|fetch\(|XMLHttp|@STYLE@|@SCRIPT@|@DATA@", page.html())

"""What the page of an extraction contains."""

import numpy as np
import pytest
from explanations import only_document, page_data
from extractions import UNITS, example, extraction

from pyramidions.inference import ExtractionPage, Extractor
from pyramidions.text.outline import Outline


def test_it_contains_sections_scores_and_the_summary() -> None:
    page = ExtractionPage("hiporank", settings={"words": "at most 220"})
    page.add("genes.txt", example(), "Genes and loci.")
    assert page_data(page.html())["settings"] == {"method": "hiporank", "words": "at most 220"}
    assert only_document(page.html()) == {
        "name": "genes.txt",
        "about": "hiporank chose 2 of 6 sentences: 8 of 20 words (40.0%).",
        "segments": [
            *(" Genes matter.", " Cells were <b>cut</b>.", " They were counted twice.", " A test was made."),
            *(" It was fair.", " Genes map to loci."),
        ],
        "blocks": [
            *(["h2", 0, ""], ["h3", 0, "A title"], ["p", 0, "1"]),
            *(["h2", 1, "Methods"], ["p", 1, "2"], ["h3", 3, "Statistics"], ["p", 3, "4"]),
            *(["h2", 5, "Results"], ["p", 5, "6"], ["h2", 6, "Acknowledgements"]),
        ],
        # -inf has no number in JSON, and six digits are kept.
        "scores": [0.25, None, 1.5, 0.25, 0.125, 3.0],
        "ranks": [3, None, 2, 3, 5, 1],
        "shades": [[120, 0, 280, 120, 0, 800]],
        "items": [
            {"text": "They were counted twice.", "links": [{"to": [2]}]},
            {"text": "Genes map to loci.", "links": [{"to": [5]}]},
        ],
        "reference": "Genes and loci.",
        "table": {
            "head": ["section", "sentences", "chosen", "best rank"],
            "rows": [
                ["before the first heading", "1", "0", "3"],
                ["Methods", "4", "1", "2"],
                ["Results", "1", "1", "1"],
            ],
            "go": [0, 1, 5],
        },
    }


def test_words_without_spaces_are_counted_as_the_budget_counts_them() -> None:
    page = ExtractionPage("lead")
    page.add("a.txt", Extractor("lead").extract("蜜蜂飞得很快。它们回家。", sentences=1))
    assert only_document(page.html())["about"] == "lead chose 1 of 2 sentences: 3 of 5 words (60.0%)."


def test_a_document_without_sentences_has_no_summary() -> None:
    page = ExtractionPage("lead")
    page.add("empty.txt", extraction(Outline((), ()), np.zeros(0), ()))
    found = only_document(page.html())
    assert (found["segments"], found["scores"], found["items"]) == ([], [], [])
    assert found["about"] == "lead chose 0 of 0 sentences: 0 of 0 words."


def test_a_dialogue_has_a_paragraph_for_each_turn_that_begins_with_its_speaker() -> None:
    page = ExtractionPage("lead")
    page.add("a.txt", Extractor("lead").extract("Ann: Bees fly. They sting.\nBob: Do they?\nAnn: Yes.\nBob: Good."))
    found = only_document(page.html())
    assert found["segments"] == [" Ann: Bees fly.", " They sting.", " Bob: Do they?", " Ann: Yes.", " Bob: Good."]
    assert [start for tag, start, _ in found["blocks"] if tag == "p"] == [0, 2, 3, 4]
    assert [item["text"] for item in found["items"]] == [text.strip() for text in found["segments"]]


def test_a_subheading_that_repeats_the_heading_of_its_section_is_kept() -> None:
    units = (*UNITS[:6], UNITS[2], *UNITS[6:])
    page = ExtractionPage("lead")
    page.add("a", example(units))
    headings = [heading for tag, _, heading in only_document(page.html())["blocks"] if tag == "h3"]
    assert headings == ["A title", "Statistics", "Methods"]


def test_a_page_holds_no_more_than_it_may_and_counts_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    one = ExtractionPage("lead")
    one.add("a", example())
    size = len(one.html().encode()) - len(ExtractionPage("lead").html().encode())
    page = ExtractionPage("lead", most=2 * size)
    for name in "abc":
        page.add(name, example())
    found = page_data(page.html())
    assert [document["name"] for document in found["documents"]] == ["a", "b"]
    assert found["left_out"] == page.left_out == 1
    # So it does with a document of more sentences than browsers draw.
    monkeypatch.setattr("pyramidions.inference.extraction_page.MOST_SENTENCES", 6)
    page = ExtractionPage("lead")
    page.add("six", example())
    units = (*UNITS, UNITS[1]._replace(section=3))
    page.add("seven", extraction(Outline(units, ("", "Methods", "Results", "Thanks")), np.zeros(7), (0,)))
    assert only_document(page.html())["name"] == "six" and page.left_out == 1

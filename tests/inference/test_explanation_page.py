"""The page of an explanation: its figures are those of the API, and nothing on it comes from elsewhere."""

import re
from dataclasses import replace

import pytest
import torch
from explanations import example, only_piece, page_data
from tables import for_each

from pyramidions.inference import ExplanationPage, html_page
from pyramidions.inference.explanation import Trace
from pyramidions.inference.explanation_page import words


def test_its_figures_are_those_of_the_api() -> None:
    explanation = example()
    page = html_page(explanation, "a.pdf")
    found = only_piece(page)
    assert page_data(page)["documents"][0]["name"] == "a.pdf"
    assert (found["tokens"], found["read"]) == (10, 6)
    assert found["document"] == explanation.document
    assert [(x["received"], x["handed_on"], x["sharpness"]) for x in found["layers"]] == [
        (6, 6, None),
        (6, 3, 0.625),
        (3, 3, None),
    ]
    for layer, shown in zip(explanation.trace.layers, found["layers"], strict=True):
        assert shown["share_for_half"] == layer.share_for_half
        torch.testing.assert_close(
            torch.tensor(found["reached"][shown["reached"]]) / 1000, layer.reached, atol=5e-4, rtol=0
        )
    # The third layer hands on what the second did: it is written once.
    assert [x["reached"] for x in found["layers"]] == [0, 1, 1]
    for (start, end), word in zip(((0, 2), (2, 3)), found["words"], strict=True):
        drew = explanation.drew_on(start, end)
        assert word["drew"]["tokens"] == drew.argsort(descending=True).tolist()
        torch.testing.assert_close(
            torch.tensor(word["drew"]["shares"]) / 1e5, drew.sort(descending=True).values, atol=5e-6, rtol=0
        )
        assert word["drew"]["covered"] == pytest.approx(1, abs=1e-4)


def test_a_word_names_its_64_strongest_tokens_and_how_much_they_got() -> None:
    explanation = example(length=500, vectors=9)
    word = only_piece(html_page(explanation, "a"))["words"][0]
    drew = explanation.drew_on(0, 2)
    assert word["text"] == " gene"
    assert word["drew"]["tokens"] == drew.argsort(descending=True)[:64].tolist()
    assert word["drew"]["covered"] == pytest.approx(float(drew.sort().values[-64:].sum()), abs=1e-5)


@for_each(
    ("written", "found"),
    [
        ([" ge", "ne", " map", ""], [(0, 2), (2, 3)]),
        (["No", " space", " first"], [(0, 1), (1, 2), (2, 3)]),
        # A marker ends a sentence, and a word.
        ([" end", ".", "", "Next", ""], [(0, 2), (3, 4)]),
        ([""], []),
        # A lone space is no word.
        ([" a", " ", " b"], [(0, 1), (2, 3)]),
        # Where words are not set apart, a token is one; a number beside them is none of theirs.
        (["基因", "图", "12", "谱"], [(0, 1), (1, 3), (3, 4)]),
    ],
)
def test_words_begin_with_a_space(written: list[str], found: list[tuple[int, int]]) -> None:
    assert words(written) == found


def test_no_document_can_break_out_of_its_place() -> None:
    evil = "</script><script>alert(1)</script><!-- $data @DATA@ \u2028"
    explanation = example()
    page = html_page(replace(explanation, document=[evil, *explanation.document[1:]]), evil)
    assert only_piece(page)["document"][0] == page_data(page)["documents"][0]["name"] == evil
    assert page.count("<script") == html_page(explanation, "a").count("<script")
    assert "<!--" not in page


def test_the_page_of_an_explanation_has_its_query() -> None:
    assert page_data(html_page(example().answering("Why?"), "a"))["documents"][0]["query"] == "Why?"
    assert "query" not in page_data(html_page(example(), "a"))["documents"][0]


def test_pieces_and_documents_stand_in_the_order_in_which_they_came() -> None:
    page = ExplanationPage("a <model>")
    summaries = page.add("long", (replace(example(length), settings={"beam": "2"}) for length in (6, 8)))
    assert [summary.read_tokens for summary in summaries] == [6, 8]
    page.add("short", [example(4)])
    found = page_data(page.html())
    assert [document["name"] for document in found["documents"]] == ["long", "short"]
    assert [[piece["read"] for piece in document["pieces"]] for document in found["documents"]] == [[6, 8], [4]]
    assert found["settings"] == {"model": "a <model>", "beam": "2"} and found["left_out"] == page.left_out == 0


def test_a_page_holds_no_more_than_it_may_and_counts_what_it_leaves_out() -> None:
    one = ExplanationPage()
    one.add("a", [example()])
    size = len(one.html().encode()) - len(ExplanationPage().html().encode())
    page = ExplanationPage(most=2 * size)
    assert len(page.add("a", [example()])) == 1 and page.left_out == 0
    # Its summaries are all there, and its first piece.
    assert len(page.add("b", [example(), example(600), example()])) == 3
    assert len(page.add("c", [example()])) == 1
    found = page_data(page.html())
    assert [(x["name"], len(x["pieces"]), x["missing"]) for x in found["documents"]] == [("a", 1, 0), ("b", 1, 2)]
    assert found["left_out"] == page.left_out == 2
    assert len(page.html().encode()) - len(ExplanationPage().html().encode()) <= 2 * size + len(",")


def test_a_document_is_shown_up_to_as_many_tokens_as_browsers_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyramidions.inference.explanation_page.MOST_TOKENS", 15)
    page = ExplanationPage()
    page.add("a", [example(6), example(8), example(4)])
    page.add("b", [example(6)])
    assert [(len(x["pieces"]), x["missing"]) for x in page_data(page.html())["documents"]] == [(2, 1), (1, 0)]
    assert page.left_out == 1


def test_it_asks_nothing_of_the_network() -> None:
    page = html_page(example(), "a")
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|src=|url\(|@import|fetch\(|XMLHttp", page)


def test_what_is_unknown_is_said() -> None:
    explanation = example()
    layers = [
        explanation.trace.layers[0],
        *(x._replace(sharpness=None, reached=None) for x in explanation.trace.layers[1:]),
    ]
    found = only_piece(html_page(replace(explanation, trace=Trace(layers, 3, None, explanation.trace.attention)), "a"))
    assert [x["reached"] for x in found["layers"]] == [0, None, None]
    assert found["traced"] is False and {word["drew"] for word in found["words"]} == {None}


def test_a_document_of_8192_tokens_and_966_of_summary_stays_below_three_megabytes() -> None:
    explanation = example(8192, 512, written=tuple(" summary" for _ in range(966)))
    explanation = replace(explanation, document=[" antidisestablishmentarianism"] * 8192)
    assert len(html_page(explanation, "a").encode()) < 3_000_000

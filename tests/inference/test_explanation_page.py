"""The page of an explanation: its figures are those of the API, and nothing on it comes from elsewhere."""

import re
from dataclasses import replace

import pytest
import torch
from explanations import example, only_document, page_data, texts_of

from pyramidions.inference import ExplanationPage, html_page
from pyramidions.inference.explanation import Trace
from pyramidions.inference.explanation_page import words
from pyramidions.inference.summary import Coverage


def test_its_figures_are_those_of_the_api() -> None:
    explanation = example()
    page = html_page(explanation, "a.pdf")
    found = only_document(page)
    assert found["name"] == "a.pdf"
    assert found["about"] == "The first 6 of 10 tokens were read; the rest was cut off."
    assert found["segments"] == [*explanation.document[:-1], " ¶"] and found["marks"]["mark"] == [5]
    halves = [f"{layer.share_for_half:.1%}" for layer in explanation.trace.layers]
    assert found["table"]["rows"] == [
        ["1", "6", "6", "100.0%", "–", halves[0]],
        ["2", "6", "3", "50.0%", "62.5%", halves[1]],
        ["3", "3", "3", "100.0%", "–", halves[2]],
    ]
    # The third layer hands on what the second did: it is written once.
    assert [stop["shades"] for stop in found["layers"]] == ["all", 0, 1, 1]
    for layer, shown in zip(explanation.trace.layers, found["layers"][1:], strict=True):
        torch.testing.assert_close(
            torch.tensor(found["shades"][shown["shades"]]) / 1000, layer.reached, atol=5e-4, rtol=0
        )
    for (start, end), word in zip(((0, 2), (2, 3)), found["items"], strict=True):
        drew, (link,) = explanation.drew_on(start, end), word["links"]
        assert link["to"] == drew.argsort(descending=True).tolist()
        torch.testing.assert_close(
            torch.tensor(link["shares"]) / 1e5, drew.sort(descending=True).values, atol=5e-6, rtol=0
        )
        assert link["covered"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
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


def test_of_what_was_read_it_says_so() -> None:
    explanation = example(length=500, vectors=9)
    word = only_document(html_page(explanation.answering("Why?"), "a"))["items"][0]
    drew, (link,) = explanation.drew_on(0, 2), word["links"]
    # A word names its 64 strongest tokens and how much they got.
    assert word["text"] == " gene" and link["to"] == drew.argsort(descending=True)[:64].tolist()
    assert link["covered"] == pytest.approx(float(drew.sort().values[-64:].sum()), abs=1e-5)
    queries = [only_document(html_page(each, "a"))["query"] for each in (explanation.answering("Why?"), explanation)]
    assert queries == ["Why?", None]
    selected = Coverage(sentences=(2, 9), selected_by="hiporank")
    of_sections = Coverage(heading="Methods", left_out=5)
    for coverage, about in (
        (selected, "2 of 9 sentences, selected by hiporank, were read; only "),
        (of_sections, "6 of 15 tokens were read, in these sections."),
    ):
        summary = example().summary._replace(coverage=coverage)
        assert only_document(html_page(replace(example(), summary=summary), "a"))["about"].startswith(about)


def test_no_document_can_break_out_of_its_place() -> None:
    evil = "</script><script>alert(1)</script><!-- $data @DATA@ \u2028"
    explanation = example()
    page = html_page(replace(explanation, document=[evil, *explanation.document[1:]]), evil)
    found = only_document(page)
    assert found["segments"][0] == found["name"] == evil
    assert page.count("<script") == html_page(explanation, "a").count("<script")
    assert "<!--" not in page
    # It asks nothing of the network.
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|src=|url\(|@import|fetch\(|XMLHttp", html_page(explanation, "a"))


def test_pieces_and_documents_stand_in_the_order_in_which_they_came() -> None:
    page = ExplanationPage("a <model>")
    summaries = page.add("long", (replace(example(length), settings={"beam": "2"}) for length in (6, 8)))
    assert [summary.read_tokens for summary in summaries] == [6, 8]
    page.add("short", [example(4)])
    found = page_data(page.html())
    assert [document["name"] for document in found["documents"]] == ["long", "short"]
    texts = [[len(text.split()) for text in texts_of(document)] for document in found["documents"]]
    # One token of each is its end.
    assert texts == [[5, 7], [3]]
    first = found["documents"][0]
    assert (
        first["parts"] == [["Piece 1 of 2", 0], ["Piece 2 of 2", 2]] and min(first["items"][2]["links"][0]["to"]) == 6
    )
    assert first["blocks"] == [["h2", 0, "Piece 1 of 2"], ["p", 0, ""], ["h2", 6, "Piece 2 of 2"], ["p", 6, ""]]
    assert first["layers"][2]["label"] == "After layer 2 of 3: 6 vectors"
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
    assert [(x["name"], len(texts_of(x))) for x in found["documents"]] == [("a", 1), ("b", 1)]
    assert found["documents"][1]["about"] == "The first 1 of 3 pieces are shown: the page is full."
    assert found["left_out"] == page.left_out == 2
    assert len(page.html().encode()) - len(ExplanationPage().html().encode()) <= 2 * size + len(",")


def test_a_document_is_shown_up_to_as_many_tokens_as_browsers_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyramidions.inference.explanation_page.MOST_TOKENS", 15)
    page = ExplanationPage()
    page.add("a", [example(6), example(8), example(4)])
    page.add("b", [example(6)])
    assert [len(texts_of(document)) for document in page_data(page.html())["documents"]] == [2, 1]
    assert page.left_out == 1


def test_what_is_unknown_is_said() -> None:
    explanation = example()
    layers = [
        explanation.trace.layers[0],
        *(x._replace(sharpness=None, reached=None) for x in explanation.trace.layers[1:]),
    ]
    unknown = replace(explanation, trace=Trace(layers, 3, None, explanation.trace.attention))
    found = only_document(html_page(unknown, "a"))
    assert [stop["shades"] for stop in found["layers"]] == ["all", 0, None, None]
    assert found["known"][0] is False and {word["links"][0] for word in found["items"]} == {None}


def test_a_document_of_8192_tokens_and_966_of_summary_stays_below_three_megabytes() -> None:
    explanation = example(8192, 512, written=tuple(" summary" for _ in range(966)))
    explanation = replace(explanation, document=[" antidisestablishmentarianism"] * 8192)
    assert len(html_page(explanation, "a").encode()) < 3_000_000

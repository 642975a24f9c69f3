"""The page of scores: its figures are those of the API, its size is bounded, and it says where sentences come from."""

import re
from collections import Counter

import numpy as np
import pytest
from explanations import page_data
from scored_systems import FIGURES, MADE_UP, SOURCE, ids, systems

from pyramidions.base.errors import UserError
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metric import Example
from pyramidions.scoring.page import MOST_POINTS, distribution, length_points, score_page
from pyramidions.scoring.page_documents import Shown, document_texts, extremes
from pyramidions.scoring.scores import Scores


def test_figures_are_those_of_the_api() -> None:
    of = systems()
    found = page_data(score_page(of, ids()))
    (_, ours), (_, lead) = of.values()
    assert found["systems"] == ["ours", "lead"] and found["documents"] == 6
    assert [figure["label"] for figure in found["figures"]] == ["ROUGE-1", "repeated", "words"]
    for scores, shown in zip((ours, lead), found["estimates"], strict=True):
        np.testing.assert_allclose(shown, list(scores.estimates.values()), rtol=1e-5)
    np.testing.assert_allclose(found["differences"], [list(ours.compare(lead).values())], rtol=1e-5)
    assert found["signature"] == ours.signature
    assert found["remarks"] == [["1 summary is empty.", "All are short."], ["All are short."]]


def test_worst_and_best_are_those_by_the_figure_whichever_is_better() -> None:
    found = page_data(score_page(systems(), ids(), documents=2))
    shown = [document["id"] for document in found["shown"]]
    of_score = [{end: [shown[at] for at in places] for end, places in each.items()} for each in found["orders"][0]]
    assert of_score[0] == {"worst": ["d0", "d1"], "best": ["d5", "d4"]}
    # It falls with the document, and lower is better.
    assert of_score[1] == {"worst": ["d0", "d1"], "best": ["d5", "d4"]}
    assert len(shown) == len(set(shown))


def test_documents_are_ordered_by_the_difference_to_each_other_system() -> None:
    of = systems()
    found = page_data(score_page(of, ids(), documents=1))
    difference = of["ours"][1].scores[:, 0] - of["lead"][1].scores[:, 0]
    ends = found["orders"][1][0]
    assert found["shown"][ends["worst"][0]]["id"] == f"d{difference.argmin()}"
    assert found["shown"][ends["best"][0]]["id"] == f"d{difference.argmax()}"


def test_few_documents_are_either_worst_or_best() -> None:
    values = np.arange(3.0).reshape(1, 3, 1)
    examples = [Examples(["a"] * 3, [("a",)] * 3)]
    (((ends,)),) = extremes(values, {"x": FIGURES["rouge1"]}, Shown(examples, ids(3), values), 10)
    assert ends == {"worst": [0], "best": [1, 2]}


def test_a_score_that_is_no_number_is_neither_worst_nor_best() -> None:
    values = np.array([2.0, np.nan, 1.0]).reshape(1, 3, 1)
    shown = Shown([Examples(["a"] * 3, [("a",)] * 3)], ids(3), values)
    extremes(values, {"x": FIGURES["rouge1"]}, shown, 10)
    assert {document["id"] for document in shown.found} == {"d0", "d2"}


def test_many_figures_show_fewer_documents_each() -> None:
    figures = {f"f{number}": FIGURES["rouge1"] for number in range(40)}
    values = np.random.default_rng(0).normal(size=(1, 50, 40))
    shown = Shown([Examples(["a"] * 50, [("a",)] * 50)], ids(50), values)
    (order,) = extremes(values, figures, shown, 10)
    assert {len(places) for each in order for places in each.values()} == {5}


def test_what_a_summary_copied_is_marked_word_by_word() -> None:
    text = document_texts([Example("Here cold water stops it, naïve 𝔸 too.", ("x",), SOURCE)])["summaries"][0]
    (sentence,) = text
    assert sentence["pieces"] == [("Here ", 0), ("cold water stops it", 4), (", naïve A too.", 0)]


def test_a_fragment_may_go_over_the_end_of_a_sentence() -> None:
    text = document_texts([Example("Cold water stops it. We counted.", ("x",), SOURCE)])["summaries"][0]
    assert [sentence["pieces"][0] for sentence in text] == [("Cold water stops it", 6), ("We counted", 6)]


def test_neighbouring_fragments_are_marked_apart() -> None:
    text = document_texts([Example("in warm water by hand", ("x",), SOURCE)])["summaries"][0]
    assert text[0]["pieces"] == [("in warm water", 3), (" ", 0), ("by hand", 2)]


def test_a_copied_sentence_is_its_own_support_and_a_made_up_one_has_none() -> None:
    found = document_texts([Example(f"Cold water stops it. {MADE_UP} Yes.", ("x",), SOURCE)])
    copied, made_up, word = found["summaries"][0]
    assert copied["support"] == [{"title": "100% in 1 sentence", "places": [[1.0, 1]]}] and copied["enough"] is True
    assert found["source"] == {1: "Cold water stops it."}
    (none,) = made_up["support"]
    assert none == {"title": "none of its pairs of words stand in the document", "places": []}
    # Of a single word nothing is said.
    assert made_up["enough"] is False and (word["support"], word["enough"]) == ([], None)


def test_without_documents_the_references_are_searched() -> None:
    found = document_texts([Example("two hours later", ("Every two", "hours later on"))])
    assert found["base"] == "reference"
    # "two hours" stands in neither of them.
    assert found["summaries"][0][0]["pieces"] == [("two", 1), (" ", 0), ("hours later", 2)]
    assert [[sentence["pieces"] for sentence in text] for text in found["references"]] == [
        [[("Every two", 0)]],
        [[("hours later on", 0)]],
    ]


def test_an_empty_summary_has_no_sentence() -> None:
    found = page_data(score_page(systems(), ids()))
    first = next(document for document in found["shown"] if document["id"] == "d0")
    assert first["summaries"][0] == [] and first["base"] == "document"


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script><!-- @DATA@", "@STYLE@ \u2028 <b>"])
def test_no_text_can_break_out_of_its_place(text: str) -> None:
    scores = Scores(FIGURES, np.zeros((1, 3)), [text], [text])
    page = score_page({text: (Examples([text], [(text,)], [text]), scores)}, [text])
    plain = score_page({"a": (Examples(["a"], [("a",)], ["a"]), scores)}, ["a"])
    assert page_data(page)["systems"] == [text]
    assert page.count("<script") == plain.count("<script") and "<!--" not in page


def test_it_asks_nothing_of_the_network() -> None:
    page = score_page(systems(), ids())
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|src=|url\(|@import|fetch\(|XMLHttp", page)


class Counted(list[str]):
    """Texts that count how many of them are read."""

    def __init__(self, number: int) -> None:
        super().__init__(["a summary"] * number)
        self.read: Counter[int] = Counter()

    def __getitem__(self, index):
        self.read[index] += 1
        return super().__getitem__(index)


def test_size_and_what_is_read_do_not_grow_with_the_documents() -> None:
    sizes = []
    for number in (2000, 20_000):
        texts = Counted(number)
        scores = Scores(FIGURES, np.random.default_rng(0).normal(size=(number, 3)))
        page = score_page({"ours": (Examples(texts, [("a reference",)] * number), scores)}, ids(number))
        sizes.append(len(page))
        assert len(texts.read) <= MOST_POINTS + 3 * 20
    assert sizes[1] < 1.05 * sizes[0]


def test_a_page_that_is_full_leaves_documents_out_and_counts_them() -> None:
    of = systems()
    examples = [of_system for of_system, _ in of.values()]
    values = np.stack([scores.scores for _, scores in of.values()])
    one = Shown(examples, ids(), values)
    assert one.place(1) == 0
    full = Shown(examples, ids(), values, most=2 * len(str(one.found[0])))
    kept = [full.place(document) for document in (1, 2, 3, 4, 5)]
    assert None in kept and full.left_out == kept.count(None) and len(full.found) == 5 - kept.count(None)


def test_names_that_utf_8_cannot_hold_are_written() -> None:
    (ours, lead), names = systems().values(), ["\ud800</script>", *ids(5)]
    page = score_page({"\udcff.txt": ours, "lead": lead}, names).encode()
    found = page_data(page.decode())
    assert found["systems"] == ["\udcff.txt", "lead"]
    assert names[0] in {document["id"] for document in found["shown"]}


def test_bars_count_all_documents() -> None:
    found = distribution(np.array([[0.0, 1.0, 2.0, 3.0], [3.0, 3.0, np.nan, 3.0]]))
    assert [sum(counts) for counts in found["counts"]] == [4, 3]
    assert (found["low"], found["high"], found["cut"]) == (0, 3, False)
    assert found["quartiles"][0] == [0, 0.75, 1.5, 2.25, 3]


def test_outliers_are_counted_in_the_last_bar() -> None:
    found = distribution(np.array([[*np.linspace(0, 1, 999), 1000.0]]))
    assert found["cut"] and found["high"] < 2 and sum(found["counts"][0]) == 1000


def test_equal_scores_are_a_single_bar() -> None:
    found = distribution(np.array([[7.0, 7.0]]))
    assert found["low"] < 7 < found["high"] and max(found["counts"][0]) == 2


def test_points_are_lengths_and_scores_and_their_correlation() -> None:
    examples = [Examples(["one", "one two", "one two three"], [("a",)] * 3)]
    found = length_points(examples, ids(3), np.array([[[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]]))
    assert found["words"] == [[1, 2, 3]] and found["scores"] == [[[1, 2, 3], [5, 5, 5]]]
    # What never changes has no correlation.
    assert found["correlations"] == [[pytest.approx(1), None]]


def test_systems_that_differ_in_what_was_measured_are_refused() -> None:
    of = systems()
    other = Scores({"rouge1": FIGURES["rouge1"]}, np.zeros((6, 1)))
    with pytest.raises(UserError, match="by the same figures"):
        score_page({"ours": of["ours"], "other": (of["lead"][0], other)}, ids())

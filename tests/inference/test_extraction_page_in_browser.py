"""The page of an extraction in a real browser: shades, marks, the summary, the chart, keyboard, dark, on a phone."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from browser import PHONE, Opener, OpenPage, contrast, luminance, needs_browser
from extractions import UNITS, example, long
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from pyramidions.extract.extraction import Extraction
from pyramidions.inference import ExtractionPage

pytestmark = needs_browser
#: 200 sentences in four sections; sentence 3 has the score 21, 52 the score 61.
LONG = long(4, 50, (3, 52, 53, 180))


Covered = list[list[tuple[str, float]]]


def bands(page: OpenPage) -> list[int]:
    """Return how each sentence is shaded: 1 for the best to 4, 0 for none."""
    script = "return [...document.querySelectorAll('.s')].map(s => Number(s.style.getPropertyValue('--m')))"
    return [(0, 0.8, 0.5, 0.28, 0.12).index(shade) for shade in page.run(script)]


def show(
    opened: Opener, *extractions: Extraction, reference: str | None = None, covered: Covered | None = None
) -> OpenPage:
    """Open a page of extractions."""
    made = ExtractionPage("hiporank", settings={"words": "at most 220"})
    for number, extraction in enumerate(extractions):
        made.add(f"{number}.txt", extraction, reference, covered)
    return opened(made.html())


def test_it_shows_sections_sentences_and_the_summary_as_text(opened: Opener) -> None:
    page = show(opened, example())
    assert page.find("h1").text == page.run("return document.title") == "0.txt"
    assert page.find("#about").text == "hiporank chose 2 of 6 sentences: 8 of 20 words (40.0%)."
    assert page.find("#document").text.split("\n") == [
        *("A title", "Genes matter.", "Methods", "Cells were <b>cut</b>. 1They were counted twice."),
        *("Statistics", "A test was made. It was fair.", "Results", "2Genes map to loci.", "Acknowledgements"),
    ]
    assert [heading.text for heading in page.all("#document h2")] == ["Methods", "Results", "Acknowledgements"]
    assert [item.text for item in page.all("#items li")] == ["1They were counted twice.", "2Genes map to loci."]
    assert [term.text for term in page.all("#settings *")] == ["method", "hiporank", "words", "at most 220"]
    assert not page.find("#reference-part").is_displayed() and not page.find("#chooser").is_displayed()


def test_sentences_are_shaded_by_the_rank_of_their_score(opened: Opener) -> None:
    page = show(opened, LONG)
    # Shares of 200 sentences; of equal scores all have the first rank.
    order = sorted(LONG.scores, reverse=True)
    shares = [order.index(score) / 200 for score in LONG.scores]
    assert bands(page) == [next((i + 1 for i, top in enumerate((0.05, 0.1, 0.25, 0.5)) if s < top), 0) for s in shares]


def test_a_sentence_without_a_score_is_not_shaded(opened: Opener) -> None:
    page = show(opened, example())
    # Ranks 3, none, 2, 3, 5, 1 of six: shares 2/6, -, 1/6, 2/6, 4/6, 0.
    assert bands(page) == [4, 0, 3, 4, 0, 1]
    page.all(".s")[1].click()
    assert page.status() == "Sentence 2 of 6, in “Methods”: no score, never chosen."


def test_chosen_sentences_are_marked_by_a_number_and_a_line(opened: Opener) -> None:
    page = show(opened, example())
    marks = page.all("#document .n")
    assert [mark.text for mark in marks] == ["1", "2"]
    assert [mark.get_attribute("aria-label") for mark in marks] == [f"Sentence {n} of the summary" for n in (1, 2)]
    lines = [sentence.value_of_css_property("border-bottom-width") for sentence in page.all(".s")]
    assert lines == ["0px", "0px", "3px", "0px", "0px", "3px"]
    marks[1].click()
    assert page.find("#items .pinned").text == "2Genes map to loci."


def test_a_sentence_of_the_summary_is_found_in_the_document(opened: Opener) -> None:
    page = show(opened, LONG)
    button = page.all("#items .w")[3]
    button.click()
    page.settle()
    picked = page.find(".s.picked")
    assert picked.text == "Sentence 3.30 says that genes map to loci." and page.in_sight(picked)
    assert button.get_attribute("aria-pressed") == "true"
    rank = sorted(LONG.scores, reverse=True).index(LONG.scores[180]) + 1
    score = f"score {LONG.scores[180]:g}, rank {rank}."
    assert page.status() == f"Sentence 181 of 200, in “Section 3”: {score} Chosen: 4 of 4 in the summary."
    assert float(page.find("#cursor").get_attribute("width")) > 0
    page.press(Keys.ESCAPE)
    assert not page.all(".picked, .pinned") and page.status().startswith("Choose a sentence")
    assert not page.all("#cursor")


def test_a_sentence_of_the_document_tells_its_score(opened: Opener) -> None:
    page = show(opened, example())
    sentence = page.all(".s")[3]
    page.point_at(sentence)
    told = "Sentence 4 of 6, in “Methods”: score 0.25, rank 3."
    assert sentence.get_attribute("title").replace("\u2068", "").replace("\u2069", "") == told
    sentence.click()
    assert page.status() == told and not page.all(".pinned")
    page.all(".s")[2].click()
    assert page.find(".pinned").text == "1They were counted twice."
    page.all(".s")[2].click()
    assert not page.all(".picked, .pinned")


def test_the_keyboard_goes_through_summary_and_document(opened: Opener) -> None:
    page = show(opened, LONG)
    page.press(Keys.TAB)
    assert page.run("return document.activeElement.textContent").startswith("1Sentence 0.3")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    assert page.find(".picked").text.startswith("Sentence 1.3")
    assert [button.get_attribute("tabindex") for button in page.all("#items .w")] == ["-1", "-1", "0", "-1"]
    page.press(Keys.END)
    assert page.find(".picked").text.startswith("Sentence 3.30")
    page.run("byId('document').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.find(".picked").text.startswith("Sentence 3.31")
    page.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.find(".picked").text.startswith("Sentence 3.29")


def test_only_the_chosen_sentences_are_shown_on_request(opened: Opener) -> None:
    page = show(opened, example())
    page.find("#only").click()
    shown = "\n".join(("… 1 sentence", "Methods", "… 1 sentence 1They were counted twice. … 2 sentences"))
    assert page.find("#document").text == f"{shown}\nResults\n2Genes map to loci.\nAcknowledgements"
    page.all(".gap")[2].click()
    assert not page.find("#only").is_selected() and page.find(".picked").text == "A test was made."
    assert len(page.all(".s")) == 6


def test_what_is_left_out_is_counted_under_each_subheading(opened: Opener) -> None:
    page = show(opened, example(chosen=(2, 4)))
    page.find("#only").click()
    methods = page.all("#document section")[1].text.split("\n")
    assert methods == [
        *("Methods", "… 1 sentence 1They were counted twice."),
        *("Statistics", "… 1 sentence 2It was fair."),
    ]
    page.press(Keys.ESCAPE)
    page.all("#items .w")[1].click()
    assert page.find(".picked").text == "It was fair."


def test_the_chart_names_the_sections_and_is_a_way_into_the_document(opened: Opener) -> None:
    page = show(opened, LONG)
    assert [label.text for label in page.all("#curve .label")] == [f"Section {i}" for i in range(4)]
    assert [flag.text for flag in page.all("#curve .flag")] == ["1", "2", "4"]  # 3 would cover 2
    width = page.find("#curve .frame").rect["width"]

    def click(place: float, beside: int = 0) -> None:
        frame = page.find("#curve .frame")
        action = ActionChains(page.browser).move_to_element_with_offset(frame, round(width * place) + beside, 0)
        action.click().perform()

    ends = [float(page.find("#curve .frame").get_attribute(name)) for name in ("x", "width")]
    places = [(float(line.get_attribute("x1")) - ends[0]) / ends[1] for line in page.all("#curve .pick")]
    assert places == pytest.approx([(place + 0.5) / 200 for place in (3, 52, 53, 180)], abs=1e-3)
    click(0.2)
    page.settle()
    assert page.run("return picked") == pytest.approx(140, abs=2) and page.in_sight(page.find(".picked"))
    # Beside the mark of a chosen sentence, that one is meant.
    click(0.4025, beside=3)
    assert page.run("return picked") == 180
    page.find("#only").click()
    click(-0.4)
    assert page.run("return picked") == 52


def test_sections_are_counted_and_lead_into_the_document(opened: Opener) -> None:
    page = show(opened, example())
    assert [row.text for row in page.all("#numbers tbody tr")] == [
        *("before the first heading 1 0 3", "Methods 4 1 2", "Results 1 1 1")
    ]
    page.all("#numbers .w")[1].click()
    assert page.find(".picked").text == "Cells were <b>cut</b>."


def test_a_reference_stands_beside_the_summary(opened: Opener) -> None:
    page = show(opened, example(), reference="Genes <i>map</i>.\n\n\n\nTo loci.")
    assert page.find("#reference").text == "Genes <i>map</i>.\n\nTo loci."
    summary, reference = page.find("#items").rect, page.find("#reference").rect
    assert summary["x"] == reference["x"] and summary["y"] < reference["y"] < 800


def test_sentences_have_more_room_than_the_concepts_beside_them(opened: Opener) -> None:
    page = show(opened, example(), covered=[[(f"concept {number}", 0.5) for number in range(9)]] * 2)
    for item in page.all("#items li"):
        sentence, concepts = item.find_element("css selector", ".w"), item.find_element("css selector", ".beside")
        assert sentence.rect["width"] > concepts.rect["width"] > 50


def test_a_document_without_sentences_is_shown_empty(opened: Opener) -> None:
    page = show(opened, example(tuple(unit for unit in UNITS if unit.is_heading), ())._replace(scores=LONG.scores[:0]))
    assert page.find("#about").text == "hiporank chose 0 of 0 sentences: 0 of 0 words." and not page.all(".s")
    page.find("#curve").click()
    page.find("#only").click()
    assert not page.all("#items li") and page.find("#status").text == ""


def test_a_hostile_document_stays_text(opened: Opener) -> None:
    evil = "<img src=x onerror=alert(1)></script><script>document.title='hacked'</script>"
    extraction = example(tuple(unit._replace(text=evil) for unit in UNITS))
    extraction = extraction._replace(outline=replace(extraction.outline, headings=(evil,) * 4))
    page = show(opened, extraction, reference=evil)
    assert page.find("#reference").text == page.find(".s").text == page.find("#document h2").text == evil
    assert not page.all("img") and page.run("return document.title") == "0.txt"
    page.run("new DOMParser().parseFromString(window.svg = written(figure()), 'image/svg+xml')")
    assert "<script" not in page.run("return svg") and "<img" not in page.run("return svg")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark_and_on_every_shade(opened: Opener, scheme: str) -> None:
    page = show(opened, LONG)
    page.turn(scheme)
    paper, ink = page.colour("body", "backgroundColor"), page.colour(".s", "color")
    assert (luminance(paper) > 0.8) == (scheme == "light")
    shades = page.run("return [...document.querySelectorAll('.s')].map(s => getComputedStyle(s).backgroundColor)")
    assert len(set(shades)) == 5
    for place in map(shades.index, set(shades)):
        *shade, alpha = page.colour(
            f"#document p:nth-of-type({place // 8 + 1}) .s:nth-of-type({place % 8 + 1})", "backgroundColor"
        )
        ground = tuple(alpha * a + (1 - alpha) * b for a, b in zip(shade, paper, strict=False))
        assert contrast(ink, ground) >= 4.5, shade
    assert contrast(page.colour(".n", "color"), page.colour(".n", "backgroundColor")) >= 4.5
    assert contrast(page.colour("#status", "color"), page.colour("aside", "backgroundColor")) >= 4.5
    for text in (".flag", ".label", "#curve .end"):
        assert contrast(page.colour(text, "fill"), paper) >= 4.5, text


def test_the_figure_is_saved_as_svg_and_png(opened: Opener, tmp_path: Path) -> None:
    root, picture = show(opened, example()).save_figure(tmp_path / "saved", "0.txt")
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for text in ("Genes map to loci.", "Methods", "1", "Summary", "loci.", "hiporank;"):
        assert text in texts
    assert picture.startswith(b"\x89PNG")


def test_a_phone_shows_it_without_scrolling_sideways(opened: Opener) -> None:
    opened.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page = show(opened, LONG, reference="Genes map to loci.")
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.all("#items .w")[2].click()
    page.settle()
    picked = page.find(".picked")
    # It is not behind the summary and the chart, which stay at the top.
    assert picked.text.startswith("Sentence 1.3") and page.in_sight(picked)
    panel, chart, only = (page.edges(selector) for selector in (".panel", "#curve", "#only"))
    assert panel[0] == 0 and panel[1] <= 0.51 * 844
    assert panel[0] < chart[0] and chart[1] <= only[0] and only[1] <= panel[1] and chart[1] - chart[0] > 60
    # Turned to a wide screen, the chart goes back above the document.
    page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.settle()
    assert page.run("return byId('strip').parentElement.id") == "main"
    assert page.run("return byId('curve').getBoundingClientRect().width") > 500


def test_twenty_thousand_sentences_open_within_seconds(opened: Opener) -> None:
    started = time.perf_counter()
    page = show(opened, long(25, 800, tuple(range(500, 20_000, 1000))))
    page.all("#items .w")[-1].click()
    page.settle()
    assert page.in_sight(page.find(".picked")) and page.find(".picked").text.startswith("Sentence 24.300")
    middle = "const b = arguments[0].getBoundingClientRect(); return (b.top + b.bottom) / 2 / innerHeight"
    assert page.run(middle, page.find(".picked")) == pytest.approx(0.55, abs=0.1)
    page.find("#only").click()
    assert len(page.all(".s")) == 20 and len(page.all(".gap")) == 20 * 2 + 5
    assert time.perf_counter() - started < 10

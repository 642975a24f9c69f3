"""Sentence by sentence on the page of an explanation, in a real browser."""

from dataclasses import replace

import pytest
from browser import PHONE, Opener, OpenPage, contrast, needs_browser
from explanations import example
from selenium.webdriver.common.keys import Keys

from pyramidions.inference import ExplanationPage
from pyramidions.inference.explanation import Trace

pytestmark = needs_browser
DOCUMENT = [" Cells", " divide", " in", " warm", " water", ".", "\n\nCold", " water", " stops", " them", ".", ""]
WRITTEN = (" Cold", " water", " stops", " them", ".", " Unicorns", " sing", " at", " night", ".", "")
EXPLANATION = replace(example(len(DOCUMENT), 4, WRITTEN), document=DOCUMENT)


@pytest.fixture
def page(opened: Opener) -> OpenPage:
    made = ExplanationPage()
    made.add("cells.txt", [EXPLANATION, EXPLANATION])
    return opened(made.html())


def supports(page: OpenPage) -> list[int]:
    """Return which tokens of the document are underlined."""
    marked = "[...document.querySelectorAll('.s')].flatMap((t, i) => t.matches('.supports') ? [i] : [])"
    found: list[int] = page.run(f"return {marked}")
    return found


def test_each_sentence_names_its_support_and_a_made_up_one_is_marked(page: OpenPage) -> None:
    items = page.all("#sentences > li")
    # Two pieces of two sentences each.
    assert len(items) == 4
    copied, made_up = items[:2]
    assert copied.text.startswith("Cold water stops them.\nBy words: 100% of its pairs of words\n100%\nCold water")
    assert "By attention: where most of it went" in copied.text and "without support" not in copied.text
    assert made_up.text.startswith("Unicorns sing at night. without support\nBy words: 0% of its pairs of words")
    assert ["alone" in item.get_attribute("class") for item in items] == [False, True, False, True]


def test_attention_is_that_of_the_api(page: OpenPage) -> None:
    by_attention = EXPLANATION.sentences[1].by_attention
    shown = page.all("#sentences > li:nth-child(2) .support:last-child li")
    assert [item.text for item in shown] == [f"{100 * each.share:.0f}%\n{each.text}" for each in by_attention]


def test_a_click_underlines_the_sentence_in_the_document_and_another_lets_it_go(page: OpenPage) -> None:
    buttons = page.all("#sentences > li:nth-child(1) .support:nth-of-type(1) .w")
    buttons[0].send_keys(Keys.ENTER)
    assert supports(page) == list(range(6, 11)) and buttons[0].get_attribute("aria-pressed") == "true"
    # The sentence of the second piece stands behind the first piece.
    second = page.find("#sentences > li:nth-child(3) .support .w")
    second.send_keys(Keys.ENTER)
    assert supports(page) == [len(DOCUMENT) + place for place in range(6, 11)]
    assert buttons[0].get_attribute("aria-pressed") == "false"
    second.send_keys(Keys.ENTER)
    assert supports(page) == []


def test_unknown_attention_is_said(opened: Opener) -> None:
    made = ExplanationPage()
    trace = Trace(EXPLANATION.trace.layers, 4, None, EXPLANATION.trace.attention)
    made.add("a", [replace(EXPLANATION, trace=trace)])
    assert "By attention: unknown" in opened(made.html()).find("#sentences > li").text


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_badge_is_readable(mode: str, page: OpenPage) -> None:
    page.turn(mode)
    assert contrast(page.colour(".badge", "color"), page.colour(".badge", "backgroundColor")) >= 4.5
    assert contrast(page.colour(".support", "color"), page.colour("aside", "backgroundColor")) >= 4.5


def test_it_is_folded_on_a_phone_and_fits(page: OpenPage) -> None:
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.browser.refresh()
    assert not page.find("#sentences").is_displayed()
    page.find("#support-part summary").click()
    assert page.find("#sentences").is_displayed()
    assert page.run("return document.documentElement.scrollWidth") <= PHONE["width"]

"""The page of segments in a real browser: shades, marks, the chart, keyboard, dark, and on a phone."""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import PHONE, Opener, OpenPage, contrast, luminance, needs_browser
from selenium.webdriver.common.keys import Keys

from pyramidions.inference import SegmentedText, SegmentPage

pytestmark = needs_browser


def segmented(text: str, predicted: bool = True, outside: int = 0) -> SegmentedText:
    """Return a text whose segments end at its bars; a boundary there has the probability 0.75, and an "a" 0.25."""
    parts = text.split("|")
    ends = np.zeros(sum(map(len, parts)), bool)
    ends[np.cumsum([len(part) for part in parts[:-1]], dtype=int) - 1] = True
    clean = "".join(parts)
    p = np.where(ends, 0.75, [0.25 * (each == "a") for each in clean]) if predicted else None
    return SegmentedText(clean, ends, p, Counter({",": outside}) if outside else Counter())


TEXT = segmented("the |cat |sat |on |the |m|at |and |the |rat", outside=2)
LONG = segmented("the |cat |sat |on |the |mat |of |immunoprecipitations |" * 300 + "end")


def show(opened: Opener, *texts: SegmentedText) -> OpenPage:
    """Open a page of texts."""
    made = SegmentPage({"model": "tiny", "boundaries": "gumbel"})
    for number, text in enumerate(texts):
        made.add(f"{number}.txt", text)
    return opened(made.html())


def test_bars_below_characters_are_as_high_as_their_entropy(opened: Opener) -> None:
    bits = np.linspace(0, 5, len(TEXT.text))
    page = show(opened, replace(TEXT, entropies=bits), TEXT)
    heights = page.run(
        "return [...document.querySelectorAll('.c')].map(c => parseFloat(c.style.getPropertyValue('--e')))"
    )
    assert heights == pytest.approx((bits / 5).tolist(), abs=0.001)
    assert "a full bar at 5 bits" in page.find("#legend").text
    page.point_at(page.all(".c")[1])
    assert page.all(".c")[1].get_attribute("title").endswith(f"Its prediction had an entropy of {bits[1]:.2f} bits")
    # A saved figure has them, too; the first one has no height.
    violet = page.run("return figure().querySelectorAll('rect[fill$=\", .7)\"]').length")
    assert violet == len(TEXT.text) - 1 - len(TEXT.rest)
    page.run("open(1)")
    assert "5 bits" not in page.find("#legend").text and not page.run(
        "return document.querySelector('[style*=\"--e\"]')"
    )


def test_it_shows_the_text_and_its_figures(opened: Opener) -> None:
    page = show(opened, TEXT)
    assert page.find("h1").text == page.run("return document.title") == "0.txt"
    assert page.find("#about").text == "34 characters in 9 segments. 2 characters outside the alphabet became spaces."
    assert page.find("#document").text == "the cat sat on the mat and the rat"
    assert [figure.text for figure in page.all("#facts dd")] == ["3.78", "88.9%", "100.0%", "7"]
    assert page.find("#document .rest").text == "rat"
    assert [item.text for item in page.all("#items li")][:2] == ["the␣\n3 · 33.3%", "cat␣\n1 · 11.1%"]
    assert not page.find("#chooser").is_displayed()


def test_segments_end_at_bars_and_characters_are_shaded_by_probability(opened: Opener) -> None:
    page = show(opened, TEXT)
    ends = page.run("return [...document.querySelectorAll('.s')].map(s => s.lastChild.className)")
    assert ends == ["c end"] * 9
    assert page.find(".c.end").value_of_css_property("border-right-width") == "2px"
    shades = page.run(
        "return [...document.querySelectorAll('#document .c')].map("
        "c => [c.textContent, getComputedStyle(c).backgroundColor.match(/[\\d.]+(?=\\))/)[0]])"
    )
    assert shades[:5] == [["the", "0"], [" ", "0.6"], ["c", "0"], ["a", "0.2"], ["t", "0"]]
    page.point_at(page.all("#document .c")[3])
    assert page.all("#document .c")[3].get_attribute("title") == "Boundary after “\u2068a\u2069” with probability 0.250"


def test_a_segment_that_is_picked_marks_all_of_its_kind(opened: Opener) -> None:
    page = show(opened, TEXT)
    assert page.status().startswith("Choose a segment")
    page.all(".s")[4].click()
    assert page.marked() == {0, 4, 8} and page.find(".picked").text.rstrip() == "the"
    assert page.status() == "“the␣”: 2 of 3, boundary with probability 0.750."
    assert page.find("#items .pinned").text == "the␣"
    page.all(".s")[4].click()
    assert page.marked() == set() and not page.all(".picked, .pinned")
    page.all("#items .w")[0].click()
    page.all("#items .w")[0].click()
    assert page.status().startswith("“the␣”: 2 of 3")
    page.press(Keys.ESCAPE)
    assert page.marked() == set() and page.status().startswith("Choose a segment")


def test_the_keyboard_goes_through_the_segments_of_the_text(opened: Opener) -> None:
    page = show(opened, LONG)
    page.run("byId('document').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.run("return picked") == 0
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert page.run("return picked") == 1
    page.run("go(2000)")
    page.settle()
    assert page.in_sight(page.find(".picked"))


def test_segments_are_counted_by_length_and_long_ones_together(opened: Opener) -> None:
    page = show(opened, TEXT)
    assert page.run("return data.bars") == [1, 0, 2, 6]
    assert page.find("#top").text == "6" and [tick.text for tick in page.all(".tick")] == ["1", "2", "3", "4"]
    page = show(opened, segmented("a|" + 30 * "a" + "|"))
    assert [tick.text for tick in page.all(".tick")] == [*map(str, range(1, 22, 2)), "24+"]


def test_boundaries_without_probabilities_are_told_so(opened: Opener) -> None:
    page = show(opened, segmented("the |cat", predicted=False))
    assert page.find(".when-unpredicted").is_displayed() and not page.find(".when-predicted").is_displayed()
    page.all(".s")[0].click()
    assert page.status() == "“the␣”: 1 of 1."


def test_a_text_without_boundaries_is_shown_and_told_so(opened: Opener) -> None:
    page = show(opened, segmented("the cat"))
    highest = "This model draws no boundary in this text: the highest probability is 0.250."
    assert page.status() == highest and page.find("#document").text == "the cat"
    page.run("byId('document').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert [figure.text for figure in page.all("#facts dd")] == ["–", "–", "0.0%", "0"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark_and_on_every_shade(opened: Opener, scheme: str) -> None:
    page = show(opened, TEXT)
    page.turn(scheme)
    paper, ink = page.colour("body", "backgroundColor"), page.colour(".c", "color")
    assert (luminance(paper) > 0.8) == (scheme == "light")
    page.run("document.querySelector('.c.end').style.setProperty('--p', 1)")
    *shade, alpha = page.colour(".c.end", "backgroundColor")
    assert contrast(ink, tuple(alpha * a + (1 - alpha) * b for a, b in zip(shade, paper, strict=False))) >= 4.5
    assert contrast(page.colour(".rest", "color"), paper) >= 4.5
    # Of marks that are no text, WCAG asks for 3.
    assert contrast(page.colour(".c.end", "borderRightColor"), paper) >= 3
    for text in ("#status", "#facts dd", "#facts dt"):
        assert contrast(page.colour(text, "color"), page.colour("aside", "backgroundColor")) >= 4.5, text


def test_the_figure_is_saved_as_svg_and_png(opened: Opener, tmp_path: Path) -> None:
    page = show(opened, TEXT)
    root, picture = page.save_figure(tmp_path / "saved", "0.txt")
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for text in ("0.txt", "Most", "segments", "the␣", "characters of a segment", "gumbel"):
        assert text in texts
    orange = page.colour(".c.end", "borderRightColor")[:3]
    bars = [mark for mark in root.iter("{http://www.w3.org/2000/svg}rect") if mark.get("width") == "2"]
    assert len(bars) == 9 and {bar.get("fill") for bar in bars} == {f"rgb({', '.join(f'{c:g}' for c in orange)})"}
    assert picture.startswith(b"\x89PNG")


def test_a_phone_shows_it_without_scrolling_sideways(opened: Opener) -> None:
    opened.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page = show(opened, LONG)
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.run("go(1000)")
    page.settle()
    panel, chart, picked = (page.edges(selector) for selector in (".panel", "#curve", ".picked"))
    assert panel[0] == 0 and panel[1] <= 0.41 * 844
    # All of the chart is in the panel, and the segment below it.
    assert chart[1] <= panel[1] and chart[1] - chart[0] > 60 and picked[0] >= panel[1] and picked[1] <= 844


def test_a_quarter_of_a_million_characters_open_within_seconds(opened: Opener) -> None:
    started = time.perf_counter()
    text = segmented("the |cat |sat |on |a |mat |of |immunoprecipitations |" * 5042)
    page = show(opened, text)
    page.run("go(30000)")
    page.settle()
    assert page.find(".picked").is_displayed() and len(page.all(".s")) > 40_000
    assert time.perf_counter() - started < 20

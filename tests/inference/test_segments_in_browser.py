"""The page of segments in a real browser: shades, marks, the chart, keyboard, dark, and on a phone."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import PHONE, OpenPage, contrast, luminance, needs_browser
from selenium import webdriver
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


class Page(OpenPage):
    """A page of segments that is open in a browser."""

    def status(self) -> str:
        return self.find("#status").text.replace("\u2068", "").replace("\u2069", "")

    def marked(self) -> list[int]:
        """Return the segments that are marked as being the same."""
        return self.run(
            "return [...document.querySelectorAll('.s')].flatMap((s, i) => s.matches('.linked') ? [i] : [])"
        )

    def settle(self) -> None:
        """Wait until the page has scrolled and is drawn."""
        for _ in range(8):
            self.browser.execute_async_script("requestAnimationFrame(arguments[0])")


@dataclass
class Shower:
    """Shows pages in a browser."""

    browser: webdriver.Chrome
    folder: Path

    def __call__(self, *texts: SegmentedText) -> Page:
        made = SegmentPage({"model": "tiny", "boundaries": "gumbel"})
        for number, text in enumerate(texts):
            made.add(f"{number}.txt", text)
        path = self.folder / "page.html"
        path.write_text(made.html(), encoding="utf-8")
        self.browser.get(path.as_uri())
        return Page(self.browser)


@pytest.fixture
def show(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[Shower]:
    yield Shower(browser, tmp_path)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    # A script that failed, or a request that was refused, would have left a word here.
    assert browser.get_log("browser") == []


def test_bars_below_characters_are_as_high_as_their_entropy(show: Shower) -> None:
    bits = np.linspace(0, 5, len(TEXT.text))
    page = show(replace(TEXT, entropies=bits), TEXT)
    heights = page.run(
        "return [...document.querySelectorAll('.c')].map(c => parseFloat(c.style.getPropertyValue('--e')))"
    )
    assert heights == pytest.approx((bits / 5).tolist(), abs=0.001)
    assert "5 bits at most" in page.find("#legend").text
    page.point_at(page.all(".c")[1])
    assert page.all(".c")[1].get_attribute("title").endswith(f"Its prediction had an entropy of {bits[1]:.2f} bits")
    # A saved figure has them, too; the first one has no height.
    violet = page.run("return figure().querySelectorAll('rect[fill$=\", .7)\"]').length")
    assert violet == len(TEXT.text) - 1 - len(TEXT.rest)
    page.run("open(1)")
    assert "5 bits" not in page.find("#legend").text and not page.run(
        "return document.querySelector('[style*=\"--e\"]')"
    )


def test_it_shows_the_text_and_its_figures(show: Shower) -> None:
    page = show(TEXT)
    assert page.find("h1").text == page.run("return document.title") == "0.txt"
    assert page.find("#about").text == "34 characters in 9 segments. 2 characters outside the alphabet became spaces."
    assert page.find("#document").text == "the cat sat on the mat and the rat"
    assert [figure.text for figure in page.all("#facts dd")] == ["3.78", "88.9%", "100.0%", "7"]
    assert page.find("#document .rest").text == "rat"
    assert [item.text for item in page.all("#items li")][:2] == ["the␣\n3 · 33.3%", "cat␣\n1 · 11.1%"]
    assert not page.find("#chooser").is_displayed()


def test_segments_end_at_bars_and_characters_are_shaded_by_probability(show: Shower) -> None:
    page = show(TEXT)
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


def test_a_segment_that_is_picked_marks_all_of_its_kind(show: Shower) -> None:
    page = show(TEXT)
    assert page.status().startswith("Choose a segment")
    page.all(".s")[4].click()
    assert page.marked() == [0, 4, 8] and page.find(".picked").text.rstrip() == "the"
    assert page.status() == "“the␣”: 2 of 3, boundary with probability 0.750."
    assert page.find("#items .pinned").text == "the␣"
    page.all(".s")[4].click()
    assert page.marked() == [] and not page.all(".picked, .pinned")
    page.all("#items .w")[0].click()
    page.all("#items .w")[0].click()
    assert page.status().startswith("“the␣”: 2 of 3")
    page.press(Keys.ESCAPE)
    assert page.marked() == [] and page.status().startswith("Choose a segment")


def test_the_keyboard_goes_through_the_segments_of_the_text(show: Shower) -> None:
    page = show(LONG)
    page.run("byId('document').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.run("return picked") == 0
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert page.run("return picked") == 1
    page.run("go(2000)")
    page.settle()
    script = "const b = arguments[0].getBoundingClientRect(); return b.top >= panelEnd() && b.bottom <= innerHeight"
    assert page.run(script, page.find(".picked"))


def test_segments_are_counted_by_length_and_long_ones_together(show: Shower) -> None:
    page = show(TEXT)
    assert page.run("return data.bars") == [1, 0, 2, 6]
    assert page.find("#top").text == "6" and [tick.text for tick in page.all(".tick")] == ["1", "2", "3", "4"]
    page = show(segmented("a|" + 30 * "a" + "|"))
    assert [tick.text for tick in page.all(".tick")] == [*map(str, range(1, 22, 2)), "24+"]


def test_boundaries_without_probabilities_are_told_so(show: Shower) -> None:
    page = show(segmented("the |cat", predicted=False))
    assert page.find(".when-unpredicted").is_displayed() and not page.find(".when-predicted").is_displayed()
    page.all(".s")[0].click()
    assert page.status() == "“the␣”: 1 of 1."


def test_a_text_without_boundaries_is_shown_and_told_so(show: Shower) -> None:
    page = show(segmented("the cat"))
    highest = "This model draws no boundary in this text: the highest probability is 0.250."
    assert page.status() == highest and page.find("#document").text == "the cat"
    page.run("byId('document').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert [figure.text for figure in page.all("#facts dd")] == ["–", "–", "0.0%", "0"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark_and_on_every_shade(show: Shower, scheme: str) -> None:
    page = show(TEXT)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
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


def test_the_figure_is_saved_as_svg_and_png(show: Shower, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    show.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(saved)})
    page = show(TEXT)
    page.find("#save-svg").click()
    page.find("#save-png").click()
    for _ in range(100):
        if {path.name for path in saved.glob("*")} == {"0.txt.svg", "0.txt.png"}:
            break
        time.sleep(0.1)
    root = ElementTree.parse(saved / "0.txt.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for text in ("0.txt", "Most", "segments", "the␣", "characters of a segment", "gumbel"):
        assert text in texts
    orange = page.colour(".c.end", "borderRightColor")[:3]
    bars = [mark for mark in root.iter("{http://www.w3.org/2000/svg}rect") if mark.get("width") == "2"]
    assert len(bars) == 9 and {bar.get("fill") for bar in bars} == {f"rgb({', '.join(f'{c:g}' for c in orange)})"}
    assert (saved / "0.txt.png").read_bytes().startswith(b"\x89PNG")


def test_a_phone_shows_it_without_scrolling_sideways(show: Shower) -> None:
    show.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page = show(LONG)
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.run("go(1000)")
    page.settle()
    script = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.top, b.bottom]"
    panel, chart, picked = (page.run(script, selector) for selector in (".panel", "#curve", ".picked"))
    assert panel[0] == 0 and panel[1] <= 0.41 * 844
    # All of the chart is in the panel, and the segment below it.
    assert chart[1] <= panel[1] and chart[1] - chart[0] > 60 and picked[0] >= panel[1] and picked[1] <= 844


def test_a_quarter_of_a_million_characters_open_within_seconds(show: Shower) -> None:
    started = time.perf_counter()
    text = segmented("the |cat |sat |on |a |mat |of |immunoprecipitations |" * 5042)
    page = show(text)
    page.run("go(30000)")
    page.settle()
    assert page.find(".picked").is_displayed() and len(page.all(".s")) > 40_000
    assert time.perf_counter() - started < 20

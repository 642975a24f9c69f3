"""The page of an explanation in a real browser: slider, words, keyboard, dark, and on a phone."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from explanations import example
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from pyramidions.inference import html_page
from pyramidions.inference.explanation import Trace

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs Debian's chromium and chromium-driver"
)
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
EXPLANATION = example(length=600, vectors=9, written=(" Ge", "nes", " map", " to", " loci", ".", ""))


class Page:
    """A page that is open in a browser."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self.browser = browser

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str, *arguments: object) -> Any:
        return self.browser.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def point_at(self, element: WebElement) -> None:
        ActionChains(self.browser).move_to_element(element).perform()

    def marked(self) -> set[int]:
        """Return which tokens of the document are shown to have been drawn on."""
        return set(
            self.run("return [...document.querySelectorAll('.t')].flatMap((t, i) => t.matches('.drew') ? [i] : [])")
        )

    def shades(self) -> torch.Tensor:
        """Return how strongly each token of the document is shaded, squared: the share that is left of it."""
        script = "return [...document.querySelectorAll('.t')].map(t => Number(t.style.getPropertyValue('--m')))"
        return torch.tensor(self.run(script), dtype=torch.float32).square()

    def colour(self, selector: str, which: str) -> tuple[float, ...]:
        found: str = self.run(
            "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, which
        )
        return tuple(float(part) for part in found[found.index("(") + 1 : -1].split(",")[:3])


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--window-size=1280,900",
        *QUIET,
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(DRIVER)) as driver:
        yield driver


@pytest.fixture
def page(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[Page]:
    path = tmp_path / "page.html"
    path.write_text(html_page(EXPLANATION, "genes.txt"), encoding="utf-8")
    browser.get(path.as_uri())
    yield Page(browser)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    # A script that failed, or a request that was refused, would have left a word here.
    assert browser.get_log("browser") == []


def test_it_shows_document_and_summary_as_text(page: Page) -> None:
    assert page.find("h1").text == "genes.txt"
    assert page.find("#read").text == "The first 600 of 604 tokens were read; the rest was cut off."
    assert page.find("#document").text == " ".join([f"w{i}" for i in range(599)] + ["¶"])
    assert page.find("#summary").text == "Genes map to loci."


def test_figures_in_the_table_are_those_of_the_api(page: Page) -> None:
    shown = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in page.all("#numbers tbody tr")]
    halves = [f"{100 * layer.share_for_half:.1f}%" for layer in EXPLANATION.trace.layers]
    assert shown == [
        ["1", "600", "600", "100.0%", "–", halves[0]],
        ["2", "600", "9", "1.5%", "62.5%", halves[1]],
        ["3", "9", "9", "100.0%", "–", halves[2]],
    ]


def test_the_slider_goes_through_the_layers_by_keyboard(page: Page) -> None:
    slider, label = page.find("#layer"), page.find("#layer-label")
    assert label.text == "After layer 3 of 3: 9 vectors"
    torch.testing.assert_close(page.shades(), EXPLANATION.reached, atol=6e-4, rtol=0)
    slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert label.text == "After layer 1 of 3: 600 vectors"
    assert page.shades().eq(1).all()
    assert page.find("#numbers tr.now td").text == "1"
    before = page.find("#area").get_attribute("d")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert label.text == "After layer 2 of 3: 9 vectors" == slider.get_attribute("aria-valuetext")
    assert page.find("#area").get_attribute("d") != before
    slider.send_keys(Keys.HOME)
    assert label.text == "The input: 600 vectors" and not page.all("#numbers tr.now")


def test_pointing_at_a_word_marks_what_it_drew_on(page: Page) -> None:
    assert page.marked() == set()
    page.point_at(page.all("#summary .w")[0])
    drew = EXPLANATION.drew_on(0, 2)
    strongest = drew.argsort(descending=True)[:64].tolist()
    assert page.marked() == set(strongest)
    status = page.find("#status").text.replace("\u2068", "").replace("\u2069", "")
    assert status.startswith(f"“Genes” drew most on “w{strongest[0]}” {100 * drew[strongest[0]]:.1f}%, ")
    assert f"The 64 tokens marked got {100 * drew[strongest].sum():.1f}% of its attention." in status
    assert page.find("#line").get_attribute("d").startswith("M")
    page.point_at(page.find("h1"))
    assert page.marked() == set() and "Point at a word" in page.find("#status").text


def test_a_click_keeps_a_word_and_brings_its_strongest_token_into_sight(page: Page) -> None:
    words = page.all("#summary .w")
    words[2].click()
    strongest = int(EXPLANATION.drew_on(3, 4).argmax())
    page.point_at(page.find("h1"))
    assert strongest in page.marked() and words[2].get_attribute("aria-pressed") == "true"
    token = page.all(".t")[strongest]
    assert "strongest" in token.get_attribute("class")
    assert page.run("const b = arguments[0].getBoundingClientRect(); return b.top > 0 && b.bottom < innerHeight", token)
    page.press(Keys.ESCAPE)
    assert page.marked() == set() and words[2].get_attribute("aria-pressed") == "false"


def test_words_are_reached_by_keyboard_with_one_stop_for_all(page: Page) -> None:
    page.press(Keys.TAB)
    assert page.run("return document.activeElement.textContent") == "Genes"
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.run("return document.activeElement.textContent") == "to"
    assert page.marked() == set(EXPLANATION.drew_on(3, 4).argsort(descending=True)[:64].tolist())
    page.press(Keys.ENTER)
    assert page.find(".w.pinned").text == "to"
    page.press(Keys.END)
    assert page.find(".w.pinned").text == "loci."
    page.press(Keys.TAB)
    assert page.run("return document.activeElement.id") == "layer"


def test_after_a_click_there_is_still_one_stop_for_all_words(page: Page) -> None:
    page.all("#summary .w")[2].click()
    page.press(Keys.ARROW_LEFT)
    assert page.find(".w.pinned").text == "map"
    assert [button.get_attribute("tabindex") for button in page.all("#summary .w")] == ["-1", "0", "-1", "-1"]


def test_arrows_go_with_the_eye_where_writing_runs_to_the_left(page: Page) -> None:
    page.run("document.querySelector('#summary p').dir = 'rtl'")
    page.press(Keys.TAB, Keys.ARROW_LEFT)
    assert page.run("return document.activeElement.textContent") == "map"


def test_the_curve_is_a_way_into_the_document(page: Page) -> None:
    curve = page.find("#curve")
    ActionChains(page.browser).move_to_element_with_offset(curve, curve.size["width"] // 2 - 2, 0).click().perform()
    assert page.run("return scrollY") > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(page: Page, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def luminance(colour: tuple[float, ...]) -> float:
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    paper = luminance(page.colour("body", "backgroundColor"))
    assert (paper > 0.8) == (scheme == "light")
    for text, ground in (("body", "body"), ("aside", "aside"), ("#status", "aside"), ("#read", "body")):
        a, b = luminance(page.colour(text, "color")), luminance(page.colour(ground, "backgroundColor"))
        # WCAG 2.1, 1.4.3
        assert (max(a, b) + 0.05) / (min(a, b) + 0.05) >= 4.5, text


def test_a_phone_shows_it_without_scrolling_sideways(page: Page) -> None:
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    assert page.run("return document.documentElement.scrollWidth") <= 390
    word = page.all("#summary .w")[1]
    word.click()
    assert page.find(".w.pinned").text == "map"
    strongest = page.find(".t.strongest")
    # It is not behind the summary, which stays at the top.
    script = "const b = arguments[0].getBoundingClientRect(); return [b.top, innerHeight - b.bottom]"
    above, below = page.run(script, strongest)
    assert above >= page.run("return document.querySelector('aside').getBoundingClientRect().bottom") and below >= 0
    assert page.run("return document.querySelector('aside').getBoundingClientRect().top") >= 0


def test_what_is_unknown_is_said_in_place(browser: webdriver.Chrome, tmp_path: Path) -> None:
    layers = [
        EXPLANATION.trace.layers[0],
        *(x._replace(sharpness=None, reached=None) for x in EXPLANATION.trace.layers[1:]),
    ]
    path = tmp_path / "page.html"
    path.write_text(html_page(replace(EXPLANATION, trace=Trace(layers, 9, None, None)), "genes.txt"))
    browser.get(path.as_uri())
    page = Page(browser)
    assert "keeps no record of which tokens" in page.find("#no-provenance").text
    assert "What single words drew on is not known" in page.find("#no-attention").text
    assert page.shades().eq(0).all()
    page.find("#layer").send_keys(Keys.HOME)
    assert page.find("#no-provenance").text == "" and page.shades().eq(1).all()
    page.all("#summary .w")[0].click()
    assert page.marked() == set() and browser.get_log("browser") == []

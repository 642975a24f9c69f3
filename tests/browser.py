"""Pages in a real browser, for tests of what they show."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs Debian's chromium and chromium-driver"
)
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


class OpenPage:
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

    def colour(self, selector: str, which: str) -> tuple[float, ...]:
        found: str = self.run(
            "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, which
        )
        parts = [float(part) for part in found[found.index("(") + 1 : -1].split(",")]
        return (*parts[:3], *(parts[3:] or [1.0]))

    def status(self) -> str:
        """Return the line of what is chosen, without the marks that isolate the direction of quoted writing."""
        return self.find("#status").text.replace("\u2068", "").replace("\u2069", "")

    def marked(self) -> set[int]:
        """Return which parts of the document are marked for what is chosen, by their places."""
        return set(
            self.run("return [...document.querySelectorAll('.s')].flatMap((t, i) => t.matches('.linked') ? [i] : [])")
        )

    def in_sight(self, element: WebElement) -> bool:
        """Return whether an element stands below what stays at the top, and on the screen."""
        script = """
            const box = arguments[0].getBoundingClientRect();
            return box.top >= panelEnd() && box.bottom <= innerHeight
        """
        return bool(self.run(script, element))

    def edges(self, selector: str) -> tuple[float, float]:
        """Return where an element begins and ends on the screen, from its top."""
        script = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.top, b.bottom]"
        top, bottom = self.run(script, selector)
        return top, bottom

    def settle(self) -> None:
        """Wait until the page has scrolled and is drawn."""
        for _ in range(8):
            self.browser.execute_async_script("requestAnimationFrame(arguments[0])")

    def turn(self, scheme: str) -> None:
        """Show the page as readers see it who prefer "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def save_figure(self, folder: Path, name: str) -> tuple[ElementTree.Element, bytes]:
        """Click both ways to save the figure, and return what stands in ``name``.svg and in ``name``.png."""
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        self.find("#save-svg").click()
        self.find("#save-png").click()
        svg, png = folder / f"{name}.svg", folder / f"{name}.png"
        WebDriverWait(self.browser, 10).until(lambda _: {svg, png} == set(folder.glob("*")))
        return ElementTree.parse(svg).getroot(), png.read_bytes()


@dataclass
class Opener:
    """Opens pages in a browser."""

    browser: webdriver.Chrome
    folder: Path

    def __call__(self, html: str) -> OpenPage:
        path = self.folder / "page.html"
        path.write_text(html, encoding="utf-8")
        self.browser.get(path.as_uri())
        return OpenPage(self.browser)


def luminance(colour: Sequence[float]) -> float:
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(ink: Sequence[float], ground: Sequence[float]) -> float:
    """Return the ratio of WCAG 2.1, 1.4.3, which asks for 4.5."""
    a, b = luminance(ink), luminance(ground)
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Start Chromium without a screen."""
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

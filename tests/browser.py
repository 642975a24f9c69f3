"""Pages in a real browser, for tests of what they show."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

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

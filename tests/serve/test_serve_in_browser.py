"""The page of `serve` in a real browser."""

import time

import pytest
from browser import PHONE, OpenPage, chromium, contrast, needs_browser
from served_page import Page

pytestmark = needs_browser
TEXT = (
    "# Bees\n\n## Methods\n\nWe counted all bees in Rome. They were fed.\n\n## Results\n\nAll bees in Rome fly fast.\n"
)


def wait_for(page: OpenPage, text: str, within: str = "#status") -> None:
    shown = ""
    for _ in range(200):
        # A frame may still be empty.
        shown = " ".join(each.text for each in page.all(within))
        if text in shown:
            return
        time.sleep(0.1)
    pytest.fail(shown)


def test_a_document_is_dropped_and_its_summary_is_shown(page: Page, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "bees.md").write_text(TEXT)
    (folder / "broken.pdf").write_text("nonsense")
    with chromium() as browser:
        opened = OpenPage(browser)
        browser.get(f"http://localhost:{page.port}/")
        assert not opened.find("#summary").is_displayed()
        opened.find("#words").send_keys("6")
        opened.find("#file").send_keys(str(folder / "bees.md"))
        wait_for(opened, "bees.md: hiporank, ")
        browser.switch_to.frame(opened.find("#summary"))
        wait_for(opened, "All bees in Rome fly fast.", "body")
        assert "bees.md" in opened.find("body").text
        browser.switch_to.default_content()
        first = opened.find("#open").get_attribute("href")
        opened.run("document.querySelector('#method').value = 'lead'")
        opened.find("#again").click()
        wait_for(opened, "bees.md: lead, ")
        assert opened.find("#open").get_attribute("href") != first
        for scheme in ("light", "dark"):
            opened.turn(scheme)
            ground = (255, 255, 255) if scheme == "light" else opened.colour("#drop", "backgroundColor")
            assert contrast(opened.colour("#save", "color"), ground) >= 4.5
        opened.find("#file").send_keys(str(folder / "broken.pdf"))
        wait_for(opened, "broken.pdf cannot be read as PDF")
        assert all("422" in each["message"] for each in browser.get_log("browser"))


def test_the_page_fits_on_a_phone(page: Page) -> None:
    with chromium() as browser:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**PHONE, "deviceScaleFactor": 1})
        browser.get(f"http://localhost:{page.port}/")
        assert OpenPage(browser).run("return document.documentElement.scrollWidth <= innerWidth")

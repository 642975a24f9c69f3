"""The page of scores in a real browser: tables, charts, documents, keyboard, dark, and on a phone."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from browser import PHONE, OpenPage, contrast, luminance, needs_browser
from scored_systems import MADE_UP, Systems, ids, systems
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from pyramidions.scoring.metric import Figure
from pyramidions.scoring.page import score_page
from pyramidions.scoring.scores import Scores

pytestmark = needs_browser


def shown(browser: webdriver.Chrome, folder: Path, of: Systems, documents: int = 3) -> OpenPage:
    path = folder / "page.html"
    number = len(next(iter(of.values()))[0])
    path.write_text(score_page(of, ids(number), documents=documents), encoding="utf-8")
    browser.get(path.as_uri())
    return OpenPage(browser)


@pytest.fixture
def page(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[OpenPage]:
    yield shown(browser, tmp_path, systems())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    # A script that failed, or a request that was refused, would have left a word here.
    assert browser.get_log("browser") == []


def headings(page: OpenPage) -> list[str]:
    return [heading.text for heading in page.all("#ends h3")]


def names(page: OpenPage) -> list[str]:
    return [name.text for name in page.all("#ends summary strong")]


def test_the_table_has_means_and_intervals_of_the_api(page: OpenPage) -> None:
    assert page.find("#about").text == "6 documents, 2 systems."
    rows = page.all("#means tbody tr")
    for row, (name, (_, scores)) in zip(rows, systems().items(), strict=True):
        assert row.find_element(By.TAG_NAME, "th").text == name
        mean, low, high = scores.estimates["rouge1"]
        expected = f"{mean:.3f}\n[{low:.3f}, {high:.3f}]".replace("-", "−")
        assert row.find_element(By.TAG_NAME, "td").text == expected
    assert [head.text for head in page.all("#means thead th")] == ["system", "ROUGE-1 ↑", "repeated ↓", "words"]


def test_differences_have_p_values_and_unclear_ones_are_grey(page: OpenPage) -> None:
    (_, ours), (_, lead) = systems().values()
    cells = page.all("#differences tbody td")
    for cell, difference in zip(cells, ours.compare(lead).values(), strict=True):
        assert cell.text.endswith(f"p = {difference.p_value:.3f}")
        assert ("unclear" in cell.get_attribute("class")) is (difference.p_value >= 0.05)
    assert page.find("#differences-title").text == "Differences: ours minus each other system"


def test_remarks_of_all_systems_are_said_once_and_the_signature_below(page: OpenPage) -> None:
    assert [remark.text for remark in page.all("#remarks li")] == ["All are short.", "ours: 1 summary is empty."]
    assert page.find("#signature").text == systems()["ours"][1].signature


def test_a_figure_is_chosen_in_the_table_and_in_the_list(page: OpenPage) -> None:
    before = page.find("#distribution .bars").get_attribute("d")
    assert headings(page) == ["Worst", "Best"]
    page.all("#means thead button")[2].click()
    assert Select(page.find("#figure")).first_selected_option.text == "words"
    assert page.find("#distribution .bars").get_attribute("d") != before
    # What describes is neither good nor bad.
    assert headings(page) == ["Lowest", "Highest"]
    Select(page.find("#figure")).select_by_visible_text("repeated")
    assert [button.get_attribute("aria-pressed") for button in page.all("thead button")] == ["false", "true", "false"]
    assert {cell.get_attribute("data-figure") for cell in page.all("td.now")} == {"1"}


def test_there_is_a_strip_of_bars_for_each_system_and_its_quartiles(page: OpenPage) -> None:
    assert len(page.all("#distribution .bars")) == len(page.all("#distribution .mean")) == 2
    page.find(".charts details summary").click()
    assert [cell.text for cell in page.all("#quartiles tbody tr:first-child td")] == [
        *("0.000", "1.250", "2.500", "3.750", "5.000")
    ]


def test_the_keyboard_goes_through_the_points_from_short_to_long(page: OpenPage) -> None:
    page.find("#lengths").send_keys(Keys.ARROW_RIGHT)
    assert page.find("#point").text == "Document d0, ours: 0 words, ROUGE-1 0.000."
    page.find("#lengths").send_keys(Keys.END)
    assert "ours: 10 words" in page.find("#point").text or "lead: 9 words" in page.find("#point").text
    page.find("#lengths").send_keys(Keys.ESCAPE)
    assert page.find("#point").text.startswith("Point at a summary")


def test_pointing_at_a_dot_tells_its_document(page: OpenPage) -> None:
    page.run("byId('lengths').scrollIntoView({block: 'center'})")
    script = "const {x, y} = points[0]; return [x, y, byId('lengths').clientWidth, byId('lengths').clientHeight]"
    x, y, width, height = page.run(script)
    chart = page.find("#lengths")
    ActionChains(page.browser).move_to_element_with_offset(chart, x - width / 2 + 2, y - height / 2).perform()
    assert page.find("#point").text == "Document d0, ours: 0 words, ROUGE-1 0.000."
    assert page.find("#ring").get_attribute("visibility") == "visible"


def test_the_worst_come_first_and_the_order_can_be_a_difference(page: OpenPage) -> None:
    assert names(page) == ["d0", "d1", "d2", "d5", "d4", "d3"]
    Select(page.find("#order")).select_by_visible_text("ours minus lead")
    assert headings(page) == ["Worst for ours", "Best for ours"]
    (_, ours), (_, lead) = systems().values()
    order = (ours.scores[:, 0] - lead.scores[:, 0]).argsort()
    assert names(page) == [f"d{place}" for place in (*order[:3], *order[:2:-1])]


def test_an_empty_summary_is_marked(page: OpenPage) -> None:
    # The worst document is open.
    texts = page.all("#ends .card:nth-of-type(1) .texts > section")
    lead = f"{systems()['lead'][1].scores[0, 0]:.3f}".replace("-", "−")
    heads = ["Reference", "ours: ROUGE-1 0.000", f"lead: ROUGE-1 {lead}"]
    assert [text.find_element(By.TAG_NAME, "h4").text for text in texts] == heads
    assert texts[1].find_element(By.CSS_SELECTOR, ".empty").text == "Empty"


def opened(page: OpenPage, number: int) -> WebElement:
    """Open a document, and return it once its texts are drawn: browsers tell of opening later than they open."""
    box = page.all("#ends .card")[number]
    box.find_element(By.TAG_NAME, "summary").click()
    WebDriverWait(page.browser, 10).until(lambda _: box.find_elements(By.CLASS_NAME, "texts"))
    return box


def test_copied_runs_are_marked_and_made_up_sentences_are_said_to_have_no_support(page: OpenPage) -> None:
    box = opened(page, 1)
    first, second = box.find_elements(By.CSS_SELECTOR, "section:nth-child(2) .sentences > li")
    copied = first.find_element(By.TAG_NAME, "mark")
    assert (copied.text, copied.get_attribute("class")) == ("Cold water stops it", "run-1")
    assert "alone" not in first.get_attribute("class") and "alone" in second.get_attribute("class")
    assert second.text == f"{MADE_UP} without support\nnone of its pairs of words stand in the document"
    summary = first.find_element(By.TAG_NAME, "summary")
    assert summary.text == "100% in 1 sentence"
    summary.send_keys(Keys.ENTER)
    assert first.find_element(By.CSS_SELECTOR, ".support li").text == "100% Cold water stops it."


def test_without_documents_the_page_says_that_the_references_were_searched(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    page = shown(browser, tmp_path, systems(with_sources=False))
    assert page.find("#documents-note").text.startswith("The documents are not at hand")
    assert browser.get_log("browser") == []


def test_figures_without_bounds_have_three_digits_however_large_they_are(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    figures = {"rouge1": Figure("ROUGE-1"), "bleurt": Figure("BLEURT", bounded=False)}
    of = {name: (examples, Scores(figures, each.scores[:, :2] - 30)) for name, (examples, each) in systems().items()}
    page = shown(browser, tmp_path, of)
    for cell, (digits, name) in zip(page.all("#means tbody td"), [(2, "rouge1"), (3, "bleurt")] * 2, strict=False):
        if cell.find_element(By.XPATH, "preceding-sibling::th").text == "ours":
            assert cell.text.splitlines()[0] == f"{of['ours'][1].estimates[name].mean:.{digits}f}".replace("-", "−")


def test_a_single_system_has_no_differences(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, {"ours": systems()["ours"]})
    assert not page.find("#differences-part").is_displayed()
    assert page.find("#about").text == "6 documents, ours."
    assert browser.get_log("browser") == []


def test_a_single_document_is_the_best(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, systems(1))
    assert names(page) == ["d0"] and headings(page) == ["Worst", "Best"]
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(mode: str, page: OpenPage) -> None:
    features = [{"name": "prefers-color-scheme", "value": mode}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    ground = page.colour("body", "backgroundColor")
    for number in (1, 2):
        opened(page, number)
    assert (luminance(ground) > 0.5) is (mode == "light")
    for selector in ("body", ".note", "th button", ".apart", ".empty", "#distribution text", "div.support"):
        which = "fill" if selector.endswith("text") else "color"
        assert contrast(page.colour(selector, which), ground) >= 4.5, selector
    assert contrast(page.colour(".badge", "color"), page.colour(".badge", "backgroundColor")) >= 4.5
    for run in (1, 2, 3):
        *tint, alpha = page.colour(f"mark.run-{run}", "backgroundColor")
        mixed = [alpha * c + (1 - alpha) * below for c, below in zip(tint, ground, strict=False)]
        assert contrast(page.colour("body", "color"), mixed) >= 4.5, run
    # The colours of six systems, as far as charts need it (WCAG 1.4.11).
    for system in range(6):
        page.run("byId('point').style.color = `var(--s${arguments[0]})`", system)
        assert contrast(page.colour("#point", "color"), ground) >= 3, system


def test_it_fits_on_a_phone(page: OpenPage) -> None:
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.browser.refresh()
    assert page.run("return document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.run("return byId('distribution').viewBox.baseVal.width") <= PHONE["width"]


def test_every_part_has_a_heading_and_every_control_a_name(page: OpenPage) -> None:
    levels = [int(heading.tag_name[1]) for heading in page.all("h1, h2, h3, h4, h5")]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    unnamed = """return [...document.querySelectorAll('select,[role=region],svg:not([aria-hidden])')].filter(element =>
        !element.labels?.length && !element.ariaLabel && !element.getAttribute('aria-labelledby')).length"""
    assert page.run(unnamed) == 0
    assert {head.get_attribute("scope") for head in page.all("thead th")} == {"col"}
    assert {head.get_attribute("scope") for head in page.all("tbody th")} == {"row"}

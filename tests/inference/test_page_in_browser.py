"""The page of an explanation in a real browser: slider, words, keyboard, dark, and on a phone."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from browser import PHONE, Opener, OpenPage, contrast, luminance, needs_browser
from explanations import example
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pyramidions.inference import Explanation, ExplanationPage, html_page
from pyramidions.inference.explanation import MemoryTrace, Trace
from pyramidions.nn.provenance import Provenance

pytestmark = needs_browser
EXPLANATION = example(length=600, vectors=9, written=(" Ge", "nes", " map", " to", " loci", ".", ""))
UNPOOLED = Provenance.of_positions(torch.zeros(1, 600, dtype=torch.bool))


def shades(page: OpenPage) -> torch.Tensor:
    """Return how strongly each token of the document is shaded, squared: the share that is left of it."""
    script = "return [...document.querySelectorAll('.s')].map(t => Number(t.style.getPropertyValue('--m')))"
    return torch.tensor(page.run(script), dtype=torch.float32).square()


def shown(opened: Opener, documents: Sequence[tuple[str, list[Explanation]]], model: str = "") -> OpenPage:
    """Open a page of several documents."""
    made = ExplanationPage(model)
    for name, explanations in documents:
        made.add(name, explanations)
    return opened(made.html())


@pytest.fixture
def page(opened: Opener) -> OpenPage:
    return opened(html_page(EXPLANATION, "genes.txt"))


def test_it_shows_document_and_summary_as_text(page: OpenPage) -> None:
    assert page.find("h1").text == "genes.txt"
    assert page.find("#about").text == "The first 600 of 604 tokens were read; the rest was cut off."
    assert page.find("#document").text == " ".join([f"w{i}" for i in range(599)] + ["¶"])
    assert page.find("#items").text == "Genes map to loci."


def test_figures_in_the_table_are_those_of_the_api(page: OpenPage) -> None:
    shown = [[cell.text for cell in row.find_elements(By.XPATH, "*")] for row in page.all("#numbers tbody tr")]
    halves = [f"{100 * layer.share_for_half:.1f}%" for layer in EXPLANATION.trace.layers]
    assert shown == [
        ["1", "600", "600", "100.0%", "–", halves[0]],
        ["2", "600", "9", "1.5%", "62.5%", halves[1]],
        ["3", "9", "9", "100.0%", "–", halves[2]],
    ]


def test_the_slider_goes_through_the_layers_by_keyboard(page: OpenPage) -> None:
    slider, label = page.find("#layer"), page.find("#layer-label")
    assert label.text == "After layer 3 of 3: 9 vectors"
    torch.testing.assert_close(shades(page), EXPLANATION.reached, atol=6e-4, rtol=0)
    slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert label.text == "After layer 1 of 3: 600 vectors"
    assert shades(page).eq(1).all()
    assert page.find("#numbers tr.now th").text == "1"
    before = page.find("#area").get_attribute("d")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert label.text == "After layer 2 of 3: 9 vectors" == slider.get_attribute("aria-valuetext")
    assert page.find("#area").get_attribute("d") != before
    slider.send_keys(Keys.HOME)
    assert label.text == "The input: 600 vectors" and not page.all("#numbers tr.now")


def test_pointing_at_a_word_marks_what_it_drew_on(page: OpenPage) -> None:
    assert page.marked() == set()
    page.point_at(page.all("#items .w")[0])
    drew = EXPLANATION.drew_on(0, 2)
    strongest = drew.argsort(descending=True)[:64].tolist()
    assert page.marked() == set(strongest)
    status = page.status()
    assert status.startswith(f"“Genes” drew most on “w{strongest[0]}” {100 * drew[strongest[0]]:.1f}%, ")
    assert f"The 64 tokens marked got {100 * drew[strongest].sum():.1f}% of its attention." in status
    assert page.find("#line").get_attribute("d").startswith("M")
    page.point_at(page.find("h1"))
    assert page.marked() == set() and "Tap or point at a word" in page.find("#status").text


def test_a_click_keeps_a_word_and_brings_its_strongest_token_into_sight(page: OpenPage) -> None:
    words = page.all("#items .w")
    words[2].click()
    strongest = int(EXPLANATION.drew_on(3, 4).argmax())
    page.point_at(page.find("h1"))
    assert strongest in page.marked() and words[2].get_attribute("aria-pressed") == "true"
    token = page.all(".s")[strongest]
    assert "strongest" in token.get_attribute("class")
    assert page.run("const b = arguments[0].getBoundingClientRect(); return b.top > 0 && b.bottom < innerHeight", token)
    page.press(Keys.ESCAPE)
    assert page.marked() == set() and words[2].get_attribute("aria-pressed") == "false"


def test_words_are_reached_by_keyboard_with_one_stop_for_all(page: OpenPage) -> None:
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


def test_after_a_click_there_is_still_one_stop_for_all_words(page: OpenPage) -> None:
    page.all("#items .w")[2].click()
    page.press(Keys.ARROW_LEFT)
    assert page.find(".w.pinned").text == "map"
    assert [button.get_attribute("tabindex") for button in page.all("#items .w")] == ["-1", "0", "-1", "-1"]


def test_arrows_go_with_the_eye_where_writing_runs_to_the_left(page: OpenPage) -> None:
    page.run("document.querySelector('#items p').dir = 'rtl'")
    page.press(Keys.TAB, Keys.ARROW_LEFT)
    assert page.run("return document.activeElement.textContent") == "map"


def test_the_curve_is_a_way_into_the_document(page: OpenPage) -> None:
    curve = page.find("#curve")
    ActionChains(page.browser).move_to_element_with_offset(curve, curve.size["width"] // 2 - 2, 0).click().perform()
    assert page.run("return scrollY") > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(page: OpenPage, scheme: str) -> None:
    page.turn(scheme)
    paper = luminance(page.colour("body", "backgroundColor"))
    assert (paper > 0.8) == (scheme == "light")
    page.all("#items .w")[0].click()
    inks = [("body", "body"), ("aside", "aside"), ("#status", "aside"), ("#about", "body"), ("#save-svg", "body")]
    inks += [(f"#curve {text}", "body") for text in ("#top", "#right-top", ".middle")]
    for text, ground in inks:
        ink = page.colour(text, "fill" if "curve" in text else "color")
        assert contrast(ink, page.colour(ground, "backgroundColor")) >= 4.5, text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_text_of_a_token_stands_out_however_strong_its_shade(page: OpenPage, scheme: str) -> None:
    page.turn(scheme)
    ink, paper = page.colour(".s", "color"), page.colour("body", "backgroundColor")
    page.find("#layer").send_keys(Keys.HOME)
    shades = [page.colour(".s", "backgroundColor")]
    page.all("#items .w")[0].click()
    shades.append(page.colour(".s.strongest", "backgroundColor"))
    assert len(set(shades)) == 2
    for *shade, alpha in shades:
        ground = tuple(alpha * a + (1 - alpha) * b for a, b in zip(shade, paper, strict=False))
        assert contrast(ink, ground) >= 4.5, (ink, ground)


def test_lines_and_paragraphs_are_those_of_the_document(opened: Opener) -> None:
    tokens = ["Ann", ":", " Hello", ".", "\nBob", ":", " Hi", ".", "\n\nThe", " end", ".", ""]
    page = shown(opened, [("talk.txt", [replace(example(12), document=tokens)])])
    assert page.find("#document").text == "Ann: Hello.\nBob: Hi.\nThe end. ¶"
    assert [paragraph.text for paragraph in page.all("#document p")] == ["Ann: Hello.\nBob: Hi.", "The end. ¶"]


def test_a_hostile_document_stays_text(opened: Opener) -> None:
    evil = "<img src=x onerror=alert(1)></script><script>document.title='hacked'</script>"
    tokens = [f"\n\n{evil}", *example().document[1:]]
    page = shown(opened, [(evil, [replace(example(), document=tokens, settings={evil: evil})])] * 2)
    assert page.find("h1").text == page.find(".s").text == page.find("option").text == evil
    assert page.run("return document.title") == evil and not page.all("img")
    page.run("document.title = 'same'; window.svg = new XMLSerializer().serializeToString(figure())")
    page.run("new DOMParser().parseFromString(svg, 'image/svg+xml')")
    assert "<script" not in page.run("return svg") and "<img" not in page.run("return svg")


def test_pieces_of_a_document_are_one_document_with_a_summary_each(opened: Opener) -> None:
    pieces = [example(6, written=(" One", "")), example(8, written=(" Two", ""))]
    page = shown(opened, [("long.txt", pieces)])
    assert page.find("#about").text == (
        "The first 14 of 22 tokens were read; the rest was cut off."  # each example lacks four
    )
    assert len(page.all("#document .s")) == 14 and len(page.all("#document section")) == 2
    assert page.find("#items").text == "Piece 1 of 2\nOne\nPiece 2 of 2\nTwo"
    torch.testing.assert_close(shades(page), torch.cat([x.reached for x in pieces]), atol=6e-4, rtol=0)
    assert page.find("#layer-label").text == "After layer 3 of 3: 6 vectors"
    page.all("#items .w")[1].click()
    # The second piece starts at token 6.
    assert page.marked() == {6 + token for token in range(8)}
    assert page.find("#numbers tr:nth-child(2)").text == "2 14 6 42.9% 62.5% " + page.all("#numbers td")[9].text


def test_of_several_documents_one_is_chosen(opened: Opener) -> None:
    page = shown(opened, [("a.txt", [EXPLANATION]), ("b.txt", [example()])])
    assert [option.text for option in page.all("#choose option")] == ["a.txt", "b.txt"]
    page.all("#items .w")[0].click()
    page.point_at(page.find("h1"))
    assert page.marked()
    page.find("#choose").send_keys(Keys.ARROW_DOWN)
    assert page.find("h1").text == "b.txt" and page.find("#items").text == "gene map"
    assert len(page.all("#document .s")) == 6 and page.marked() == set()
    assert len(page.all("#numbers tbody tr")) == 3


def test_a_full_page_says_what_is_not_on_it(opened: Opener) -> None:
    made = ExplanationPage(most=1)
    made.add("a.txt", [example()])
    text = "This page is full: 1 document of the same call is not on it, or not to the end."
    assert opened(made.html()).find("#left-out").text == text


def test_the_axes_say_what_the_chart_shows(page: OpenPage) -> None:
    words = [text.text for text in page.all("#curve text") if text.text]
    assert words[0] == "left of a token (mean)" and words[-3:] == ["1", "token of the document", "600"]
    page.all("#items .w")[1].click()
    heights = EXPLANATION.drew_on(2, 3).clone()
    heights[heights.argsort(descending=True)[64:]] = 0
    top = heights.reshape(200, 3).sum(1).max()
    assert page.find("#right-label").text.replace("\u2068", "").replace("\u2069", "") == "attention of “map” (sum)"
    assert page.find("#right-top").text == (f"{100 * top:.1f}%" if top >= 0.01 else f"{100 * top:.2g}%")
    assert page.find("#top").text == f"{100 * EXPLANATION.reached.reshape(200, 3).mean(1).max():.1f}%"


def test_model_and_settings_are_named(opened: Opener) -> None:
    page = shown(opened, [("a.txt", [replace(example(), settings={"beam": "2"})])], model="checkpoints")
    assert [term.text for term in page.all("#settings *")] == ["model", "checkpoints", "beam", "2"]


def test_the_figure_is_saved_as_svg_and_png(opened: Opener, tmp_path: Path) -> None:
    page = shown(opened, [("a b.txt", [replace(example(), settings={"beam": "2"})])], model="tiny")
    page.all("#items .w")[1].click()
    root, picture = page.save_figure(tmp_path / "saved", "a-b.txt")
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["a", "b.txt"]
    assert [f"w{i}" for i in range(5)] == [text for text in texts if text and re.fullmatch(r"w\d", text)]
    for word in ("gene", "map", "token of the document", "tiny;", "beam:"):
        assert word in texts
    assert picture.startswith(b"\x89PNG")
    # Twice the size, to be sharp in print.
    assert int.from_bytes(picture[16:20]) == pytest.approx(2 * float(root.get("width") or 0), abs=2)


def test_a_phone_shows_it_without_scrolling_sideways(page: OpenPage) -> None:
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    assert page.run("return document.documentElement.scrollWidth") <= 390
    word = page.all("#items .w")[1]
    word.click()
    assert page.find(".w.pinned").text == "map"
    # It is not behind the summary, which stays at the top.
    above, below = page.edges(".s.strongest")
    assert above >= page.edges(".panel")[1] and below <= page.run("return innerHeight")
    top, bottom = page.edges(".panel")
    assert top == 0 and bottom <= 844 / 3
    # All of the chart is in the panel, its axis as well.
    chart = page.edges("#curve")
    assert top < chart[0] and chart[1] <= bottom and chart[1] - chart[0] > 80
    assert page.find("#layer").size["width"] > 100


def test_a_phone_held_sideways_shows_the_chart_beside_the_summary(page: OpenPage) -> None:
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**PHONE, "width": 844, "height": 390})
    page.all("#items .w")[1].click()
    script = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top, b.bottom]"
    panel, words, chart = (page.run(script, selector) for selector in (".panel", "#items", "#curve"))
    assert chart[0] > words[0] and panel[1] <= chart[1] and chart[2] <= panel[2] <= 390 / 2 + 1


def test_of_several_memories_one_is_chosen_and_global_tokens_are_marked(opened: Opener) -> None:
    torch.manual_seed(1)
    unpooled = MemoryTrace(1, 600, UNPOOLED, torch.rand(7, 600).pow(8))
    seen = torch.zeros(600, dtype=torch.bool).index_fill(0, torch.tensor([0, 40]), True)
    both = replace(EXPLANATION, trace=EXPLANATION.trace._replace(further=(unpooled,), seen_by_all=seen))
    page = shown(opened, [("both.txt", [both]), ("one.txt", [EXPLANATION])])
    assert [page.all(".s").index(token) for token in page.all(".s.global")] == [0, 40]
    assert page.find(".when-global").is_displayed()
    names = [option.text for option in page.all("#view option")]
    assert names == ["all that the decoder reads (mean)", "the encoder's output (9 vectors)", "layer 1 (600 vectors)"]
    page.all("#items .w")[0].click()
    found = []
    for memory in (None, 0, 1):
        if memory is not None:
            page.find("#view").send_keys(Keys.ARROW_DOWN)
        assert page.marked() == set(both.drew_on(0, 2, memory).argsort(descending=True, stable=True)[:64].tolist())
        found.append(page.find("#status").text)
    assert len(set(found)) == 3 and found[2].endswith("of its attention to layer 1 (600 vectors).")
    page.find("#choose").send_keys(Keys.ARROW_DOWN)
    assert page.find("h1").text == "one.txt" and not page.find("#views").is_displayed()
    assert not page.find(".when-global").is_displayed()


def test_what_a_word_was_copied_from_is_shown_first_where_the_model_copies(opened: Opener) -> None:
    copied = torch.zeros(7, 600)
    copied[0, [30, 50]] = torch.tensor([0.5, 0.25])
    summary = EXPLANATION.summary._replace(copied=0.1)
    copying = replace(EXPLANATION, summary=summary, trace=EXPLANATION.trace._replace(copied=copied))
    page = shown(opened, [("genes.txt", [copying])])
    names = [option.text for option in page.all("#view option")]
    assert names == ["the encoder's output (9 vectors)", "the tokens it was copied from"]
    page.all("#items .w")[0].click()
    assert page.marked() == {30, 50}
    # The word has two tokens, of which the second was generated.
    assert "was copied with a probability of 37.5%: " in page.find("#status").text
    page.all("#items .w")[1].click()
    assert page.marked() == set() and page.find("#status").text.endswith("was generated, not copied.")
    page.find("#view").send_keys(Keys.ARROW_UP)
    assert len(page.marked()) == 64


def test_what_is_unknown_of_one_memory_is_said_where_it_is_chosen(opened: Opener) -> None:
    unpooled = MemoryTrace(1, 600, UNPOOLED, torch.rand(7, 600))
    hidden = EXPLANATION.trace._replace(provenance=None, further=(unpooled,))
    page = shown(opened, [("genes.txt", [replace(EXPLANATION, trace=hidden)])])
    assert "What single words drew on is not known" in page.find("#unknown-links").text
    page.find("#view").send_keys(Keys.END)
    assert page.find("#unknown-links").text == "" and "Tap or point at a word" in page.find("#status").text
    page.all("#items .w")[0].click()
    assert len(page.marked()) == 64
    page.find("#view").send_keys(Keys.ARROW_UP)
    assert "What single words drew on is not known" in page.find("#unknown-links").text and not page.marked()


def test_what_is_unknown_is_said_in_place(opened: Opener) -> None:
    layers = [
        EXPLANATION.trace.layers[0],
        *(x._replace(sharpness=None, reached=None) for x in EXPLANATION.trace.layers[1:]),
    ]
    page = opened(html_page(replace(EXPLANATION, trace=Trace(layers, 9, None, None)), "genes.txt"))
    assert "keeps no record of which tokens" in page.find("#unknown-shades").text
    assert "What single words drew on is not known" in page.find("#unknown-links").text
    assert shades(page).eq(0).all()
    page.find("#layer").send_keys(Keys.HOME)
    assert page.find("#unknown-shades").text == "" and shades(page).eq(1).all()
    page.all("#items .w")[0].click()
    assert page.marked() == set()


def asked(query: str, seed: int) -> Explanation:
    """Return an explanation of a document of 40 words behind a query of two, with weights that the seed decides."""
    made = example(length=43, vectors=9)
    torch.manual_seed(seed)
    reached = torch.rand(43)
    reached[:3] = 1
    layers = [
        layer._replace(reached=reached if layer.handed_on == 9 else torch.ones(43)) for layer in made.trace.layers
    ]
    document = [*(f" {word}" for word in query.split()), "", *(f" w{i}." for i in range(39)), ""]
    return replace(made, document=document, trace=made.trace._replace(layers=layers), asked=3)


def test_the_page_shows_the_query_and_what_another_one_changed(opened: Opener) -> None:
    made, explanations = ExplanationPage(), [asked("Why bees?", 1), asked("Who danced?", 2)]
    for explanation, query in zip(explanations, ("Why bees?", "Who danced?"), strict=True):
        made.add("a.txt", [explanation], query)
    made.add("b.txt", [EXPLANATION])
    page = opened(made.html())
    assert page.find("#query").text == "Query: Why bees?" and page.find("#document .query").text == "Why bees?"
    assert page.all("#document p")[1].text.startswith("w0. w1.")
    reached = [explanation.reached for explanation in explanations]
    assert reached[0] is not None and reached[1] is not None
    assert torch.allclose(shades(page), reached[0], atol=2e-3)
    page.run("const s = arguments[0]; s.selectedIndex = 1; s.dispatchEvent(new Event('change'))", page.find("#compare"))
    own, other = (shares[3:-1] for shares in reached)
    assert torch.allclose(shades(page)[3:-1], (own - other).clamp(min=0), atol=2e-3)
    common = float(torch.minimum(own, other).sum() / torch.maximum(own, other).sum())
    assert f"Of all that is left for either, {100 * common:.1f}% is left for both." in page.find("#changed").text
    more = [button.text for button in page.all(".passages div:not(.other) .w")]
    assert more == [f"w{i}." for i in (own - other).argsort(descending=True)[:5].tolist()]
    page.run("const s = arguments[0]; s.value = 2; s.dispatchEvent(new Event('change'))", page.find("#choose"))
    assert not page.find("#comparison").is_displayed() and page.find("#query").text == ""

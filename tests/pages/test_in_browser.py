"""The pages of explanations, of extractions and of `serve` in a real browser."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from browser import PHONE, Opener, OpenPage, chromium, contrast, luminance, needs_browser
from explanations import example as explained
from extractions import UNITS, example, long
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from served_page import served

from pyramidions.inference import Explanation, ExplanationPage, ExtractionPage
from pyramidions.inference.explanation import MemoryTrace, Trace
from pyramidions.nn.provenance import Provenance

pytestmark = needs_browser
EVIL = "<img src=x onerror=alert(1)></script><script>document.title='hacked'</script>"
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
SIDEWAYS = {**PHONE, "width": 844, "height": 390}

GENES = explained(length=600, vectors=9, written=(" Ge", "nes", " map", " to", " loci", ".", ""))
UNPOOLED = Provenance.of_positions(torch.zeros(1, 600, dtype=torch.bool))
TALK = ["Ann", ":", " Hello", ".", "\nBob", ":", " Hi", ".", "\n\nThe", " end", ".", ""]
PIECES = [explained(6, written=(" One", "")), explained(8, written=(" Two", ""))]
CELLS = [" Cells", " divide", " in", " warm", " water", ".", "\n\nCold", " water", " stops", " them", ".", ""]
WRITTEN = (" Cold", " water", " stops", " them", ".", " Unicorns", " sing", " at", " night", ".", "")
SUPPORTED = replace(explained(len(CELLS), 4, WRITTEN), document=CELLS)

#: 200 sentences in four sections; sentence 3 has the score 21, 52 the score 61.
LONG = long(4, 50, (3, 52, 53, 180))
HEADINGS_ALONE = example(tuple(unit for unit in UNITS if unit.is_heading), ())._replace(scores=LONG.scores[:0])


def explanations(*documents: tuple[str, list[Explanation]], model: str = "") -> str:
    made = ExplanationPage(model)
    for name, of in documents:
        made.add(name, of)
    return made.html()


def extractions(*of: object, reference: str | None = None, covered: object = None) -> str:
    made = ExtractionPage("hiporank", settings={"words": "at most 220"})
    for number, extraction in enumerate(of):
        made.add(f"{number}.txt", extraction, reference, covered)  # type: ignore[arg-type]
    return made.html()


def choose(page: OpenPage, number: int) -> None:
    Select(page.find("#choose")).select_by_index(number)


def shades(page: OpenPage) -> torch.Tensor:
    """Return how strongly each token of the document is shaded, squared: the share that is left of it."""
    script = "return [...document.querySelectorAll('.s')].map(t => Number(t.style.getPropertyValue('--m')))"
    return torch.tensor(page.run(script), dtype=torch.float32).square()


def focused(page: OpenPage) -> str:
    found: str = page.run("return document.activeElement.textContent")
    return found


def plain(text: str) -> str:
    """Return a text without the marks that isolate the direction of quoted writing."""
    return text.replace("\u2068", "").replace("\u2069", "")


def strongest(explanation: Explanation, start: int, end: int, memory: int | None = None) -> list[int]:
    drew = explanation.drew_on(start, end, memory)
    return drew.argsort(descending=True, stable=True)[:64].tolist()  # type: ignore[no-any-return]


@pytest.fixture
def genes(opened: Opener) -> OpenPage:
    return opened(explanations(("genes.txt", [GENES]), ("b.txt", [explained()])))


def test_an_explanation_shows_text_figures_and_axes(genes: OpenPage) -> None:
    assert genes.find("h1").text == "genes.txt" and genes.find("#items").text == "Genes map to loci."
    assert genes.find("#about").text == "The first 600 of 604 tokens were read; the rest was cut off."
    assert genes.find("#document").text == " ".join([f"w{i}" for i in range(599)] + ["¶"])
    half = f"{100 * GENES.trace.layers[1].share_for_half:.1f}%"
    assert genes.all("#numbers tbody tr")[1].text == f"2 600 9 1.5% 62.5% {half}"
    words = [text.text for text in genes.all("#curve text") if text.text]
    assert words[0] == "left of a token (mean)" and words[-3:] == ["1", "token of the document", "600"]
    genes.all("#items .w")[1].click()
    heights = GENES.drew_on(2, 3).clone()
    heights[heights.argsort(descending=True)[64:]] = 0
    top = heights.reshape(200, 3).sum(1).max()
    assert plain(genes.find("#right-label").text) == "attention of “map” (sum)"
    assert genes.find("#right-top").text == (f"{100 * top:.1f}%" if top >= 0.01 else f"{100 * top:.2g}%")
    assert genes.find("#top").text == f"{100 * GENES.reached.reshape(200, 3).mean(1).max():.1f}%"
    # Another document begins anew.
    genes.point_at(genes.find("h1"))
    assert genes.marked()
    choose(genes, 1)
    assert genes.find("h1").text == "b.txt" and genes.find("#items").text == "gene map"
    assert len(genes.all("#document .s")) == 6 and genes.marked() == set()


def test_the_slider_goes_through_the_layers_by_keyboard(genes: OpenPage) -> None:
    slider, label = genes.find("#layer"), genes.find("#layer-label")
    assert label.text == "After layer 3 of 3: 9 vectors"
    torch.testing.assert_close(shades(genes), GENES.reached, atol=6e-4, rtol=0)
    slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert label.text == "After layer 1 of 3: 600 vectors" == slider.get_attribute("aria-valuetext")
    assert shades(genes).eq(1).all() and genes.find("#numbers tr.now th").text == "1"
    before = genes.find("#area").get_attribute("d")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert genes.find("#area").get_attribute("d") != before
    slider.send_keys(Keys.HOME)
    assert label.text == "The input: 600 vectors" and not genes.all("#numbers tr.now")


def test_words_and_what_they_drew_on_are_linked_both_ways(genes: OpenPage) -> None:
    assert genes.marked() == set()
    words = genes.all("#items .w")
    genes.point_at(words[0])
    drew, best = GENES.drew_on(0, 2), strongest(GENES, 0, 2)
    assert genes.marked() == set(best)
    assert genes.status().startswith(f"“Genes” drew most on “w{best[0]}” {100 * drew[best[0]]:.1f}%, ")
    assert f"The 64 tokens marked got {100 * drew[best].sum():.1f}% of its attention." in genes.status()
    assert genes.find("#line").get_attribute("d").startswith("M")
    genes.point_at(genes.find("h1"))
    assert genes.marked() == set() and "Tap or point at a word" in genes.find("#status").text
    words[2].click()
    genes.point_at(genes.find("h1"))
    token = genes.all(".s")[int(GENES.drew_on(3, 4).argmax())]
    assert "linked" in token.get_attribute("class") and "strongest" in token.get_attribute("class")
    assert words[2].get_attribute("aria-pressed") == "true"
    assert genes.run(
        "const b = arguments[0].getBoundingClientRect(); return b.top > 0 && b.bottom < innerHeight", token
    )
    genes.press(Keys.ESCAPE)
    assert genes.marked() == set() and words[2].get_attribute("aria-pressed") == "false"
    curve = genes.find("#curve")
    genes.run("scrollTo(0, 0)")
    ActionChains(genes.browser).move_to_element_with_offset(curve, curve.size["width"] // 2 - 2, 0).click().perform()
    assert genes.run("return scrollY") > 100


def test_words_are_reached_by_keyboard_with_one_stop_for_all(genes: OpenPage) -> None:
    genes.find("#choose").send_keys(Keys.TAB)
    assert focused(genes) == "Genes"
    genes.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert focused(genes) == "to"
    assert genes.marked() == set(strongest(GENES, 3, 4))
    genes.press(Keys.ENTER)
    assert genes.find(".w.pinned").text == "to"
    genes.press(Keys.END)
    assert genes.find(".w.pinned").text == "loci."
    genes.press(Keys.TAB)
    assert genes.run("return document.activeElement.id") == "layer"
    # After a click there is still one stop.
    genes.all("#items .w")[2].click()
    genes.press(Keys.ARROW_LEFT)
    assert genes.find(".w.pinned").text == "map"
    assert [button.get_attribute("tabindex") for button in genes.all("#items .w")] == ["-1", "0", "-1", "-1"]
    # Arrows go with the eye where writing runs to the left.
    genes.run("document.querySelector('#items p').dir = 'rtl'")
    genes.press(Keys.ARROW_LEFT)
    assert focused(genes) == "to"


def test_lines_pieces_and_settings_are_those_of_the_documents(opened: Opener) -> None:
    talk = replace(explained(12), document=TALK, settings={"beam": "2"})
    full = ExplanationPage(most=1)
    full.add("a.txt", [explained()])
    said = "This page is full: 1 document of the same call is not on it, or not to the end."
    assert opened(full.html()).find("#left-out").text == said
    page = opened(explanations(("talk.txt", [talk]), ("long.txt", PIECES), model="checkpoints"))
    assert page.find("#document").text == "Ann: Hello.\nBob: Hi.\nThe end. ¶"
    assert [paragraph.text for paragraph in page.all("#document p")] == ["Ann: Hello.\nBob: Hi.", "The end. ¶"]
    assert [term.text for term in page.all("#settings *")] == ["model", "checkpoints", "beam", "2"]
    choose(page, 1)
    assert page.find("#items").text == "Piece 1 of 2\nOne\nPiece 2 of 2\nTwo"
    assert len(page.all("#document section")) == 2
    page.all("#items .w")[1].click()
    # The second piece starts at token 6.
    assert page.marked() == {6 + token for token in range(8)}


def test_of_several_memories_one_is_chosen_and_global_tokens_are_marked(opened: Opener) -> None:
    torch.manual_seed(1)
    unpooled = MemoryTrace(1, 600, UNPOOLED, torch.rand(7, 600).pow(8))
    seen = torch.zeros(600, dtype=torch.bool).index_fill(0, torch.tensor([0, 40]), True)
    both = replace(GENES, trace=GENES.trace._replace(further=(unpooled,), seen_by_all=seen))
    copied = torch.zeros(7, 600)
    copied[0, [30, 50]] = torch.tensor([0.5, 0.25])
    copying = replace(GENES, trace=GENES.trace._replace(copied=copied))
    copying = replace(copying, summary=GENES.summary._replace(copied=0.1))
    page = opened(explanations(("both.txt", [both]), ("one.txt", [GENES]), ("copied.txt", [copying])))
    assert [page.all(".s").index(token) for token in page.all(".s.global")] == [0, 40]
    assert page.find(".when-global").is_displayed()
    page.all("#items .w")[0].click()
    for view, memory in enumerate((None, 0, 1)):
        Select(page.find("#view")).select_by_index(view)
        assert page.marked() == set(strongest(both, 0, 2, memory))
    assert page.find("#status").text.endswith("of its attention to layer 1 (600 vectors).")
    choose(page, 1)
    assert not page.find("#views").is_displayed() and not page.find(".when-global").is_displayed()
    # What a word was copied from is shown first where the model copies.
    choose(page, 2)
    assert [option.text for option in page.all("#view option")][1] == "the tokens it was copied from"
    page.all("#items .w")[0].click()
    # The word has two tokens, of which the second was generated.
    assert page.marked() == {30, 50} and "copied with a probability of 37.5%: " in page.find("#status").text
    page.all("#items .w")[1].click()
    assert page.marked() == set() and page.find("#status").text.endswith("was generated, not copied.")


def test_what_is_unknown_is_said_in_place(opened: Opener) -> None:
    first, *later = GENES.trace.layers
    layers = [first, *(layer._replace(sharpness=None, reached=None) for layer in later)]
    page = opened(explanations(("unknown.txt", [replace(GENES, trace=Trace(layers, 9, None, None))])))
    assert "keeps no record of which tokens" in page.find("#unknown-shades").text
    assert "What single words drew on is not known" in page.find("#unknown-links").text and shades(page).eq(0).all()
    page.find("#layer").send_keys(Keys.HOME)
    assert page.find("#unknown-shades").text == "" and shades(page).eq(1).all()
    page.all("#items .w")[0].click()
    assert page.marked() == set()


def asked(query: str, seed: int) -> Explanation:
    """Return an explanation of a document of 40 words behind a query of two, with weights that the seed decides."""
    made = explained(length=43, vectors=9)
    torch.manual_seed(seed)
    reached = torch.rand(43)
    reached[:3] = 1
    layers = [
        layer._replace(reached=reached if layer.handed_on == 9 else torch.ones(43)) for layer in made.trace.layers
    ]
    document = [*(f" {word}" for word in query.split()), "", *(f" w{i}." for i in range(39)), ""]
    return replace(made, document=document, trace=made.trace._replace(layers=layers), asked=3)


def test_the_page_shows_the_query_and_what_another_one_changed(opened: Opener) -> None:
    made, found = ExplanationPage(), [asked("Why bees?", 1), asked("Who danced?", 2)]
    for explanation, query in zip(found, ("Why bees?", "Who danced?"), strict=True):
        made.add("a.txt", [explanation], query)
    made.add("b.txt", [GENES])
    page = opened(made.html())
    assert page.find("#query").text == "Query: Why bees?" and page.find("#document .query").text == "Why bees?"
    assert page.all("#document p")[1].text.startswith("w0. w1.")
    assert torch.allclose(shades(page), found[0].reached, atol=2e-3)
    Select(page.find("#compare")).select_by_index(1)
    own, other = (explanation.reached[3:-1] for explanation in found)
    assert torch.allclose(shades(page)[3:-1], (own - other).clamp(min=0), atol=2e-3)
    common = float(torch.minimum(own, other).sum() / torch.maximum(own, other).sum())
    assert f"Of all that is left for either, {100 * common:.1f}% is left for both." in page.find("#changed").text
    more = [button.text for button in page.all(".passages div:not(.other) .w")]
    assert more == [f"w{i}." for i in (own - other).argsort(descending=True)[:5].tolist()]
    choose(page, 2)
    assert not page.find("#comparison").is_displayed() and page.find("#query").text == ""


def test_each_sentence_of_a_summary_names_its_support(opened: Opener) -> None:
    unknown = replace(SUPPORTED, trace=Trace(SUPPORTED.trace.layers, 4, None, SUPPORTED.trace.attention))
    page = opened(explanations(("cells.txt", [SUPPORTED, SUPPORTED]), ("a", [unknown])))
    # Two pieces of two sentences each.
    copied, made_up, *others = items = page.all("#sentences > li")
    assert len(others) == 2 and copied.text.startswith(
        "Cold water stops them.\nBy words: 100% of its pairs of words\n100%\nCold water"
    )
    assert "By attention: where most of it went" in copied.text and "without support" not in copied.text
    assert made_up.text.startswith("Unicorns sing at night. without support\nBy words: 0% of its pairs of words")
    assert ["alone" in item.get_attribute("class") for item in items] == [False, True, False, True]

    def supports() -> list[int]:
        return [at for at, token in enumerate(page.all(".s")) if "supports" in token.get_attribute("class")]

    first, second = (page.find(f"#sentences > li:nth-child({number}) .support .w") for number in (1, 3))
    first.send_keys(Keys.ENTER)
    assert supports() == list(range(6, 11)) and first.get_attribute("aria-pressed") == "true"
    # The sentence of the second piece stands behind the first piece.
    second.send_keys(Keys.ENTER)
    assert supports() == [len(CELLS) + place for place in range(6, 11)]
    assert first.get_attribute("aria-pressed") == "false"
    second.send_keys(Keys.ENTER)
    assert supports() == []
    choose(page, 1)
    assert "By attention: unknown" in page.find("#sentences > li").text


def test_an_extraction_shows_sections_sentences_and_the_summary(opened: Opener) -> None:
    page = opened(extractions(example()))
    assert page.find("h1").text == page.run("return document.title") == "0.txt"
    assert page.find("#document").text.split("\n") == [
        *("A title", "Genes matter.", "Methods", "Cells were <b>cut</b>. 1They were counted twice."),
        *("Statistics", "A test was made. It was fair.", "Results", "2Genes map to loci.", "Acknowledgements"),
    ]
    assert [item.text for item in page.all("#items li")] == ["1They were counted twice.", "2Genes map to loci."]
    assert [term.text for term in page.all("#settings *")] == ["method", "hiporank", "words", "at most 220"]
    assert not page.find("#reference-part").is_displayed() and not page.find("#chooser").is_displayed()
    assert page.find("#numbers tbody tr").text == "before the first heading 1 0 3"
    assert page.find("#document .n").get_attribute("aria-label") == "Sentence 1 of the summary"
    lines = [sentence.value_of_css_property("border-bottom-width") for sentence in page.all(".s")]
    assert lines == ["0px", "0px", "3px", "0px", "0px", "3px"]
    # Shades follow ranks: 3, none, 2, 3, 5, 1 of six.
    torch.testing.assert_close(shades(page).sqrt(), torch.tensor([0.12, 0, 0.28, 0.12, 0, 0.8]))
    # A reference and concepts stand beside the summary.
    covered = [[(f"concept {number}", 0.5) for number in range(9)]] * 2
    page = opened(extractions(example(), covered=covered, reference="Genes <i>map</i>.\n\n\n\nTo loci."))
    for item in page.all("#items li"):
        sentence, concepts = item.find_element("css selector", ".w"), item.find_element("css selector", ".beside")
        assert sentence.rect["width"] > concepts.rect["width"] > 50
    assert page.find("#reference").text == "Genes <i>map</i>.\n\nTo loci."


def test_sentences_of_summary_and_document_are_linked_by_mouse_and_keyboard(opened: Opener) -> None:
    page = opened(extractions(example(), LONG, HEADINGS_ALONE))
    page.all(".s")[1].click()
    assert page.status() == "Sentence 2 of 6, in “Methods”: no score, never chosen."
    sentence, told = page.all(".s")[3], "Sentence 4 of 6, in “Methods”: score 0.25, rank 3."
    page.point_at(sentence)
    assert plain(sentence.get_attribute("title") or "") == told
    sentence.click()
    assert page.status() == told and not page.all(".pinned")
    page.all(".s")[2].click()
    assert page.find(".pinned").text == "1They were counted twice."
    page.all(".s")[2].click()
    assert not page.all(".picked, .pinned")
    page.all("#document .n")[1].click()
    assert page.find("#items .pinned").text == "2Genes map to loci."
    page.all("#numbers .w")[1].click()
    assert page.find(".picked").text == "Cells were <b>cut</b>."
    choose(page, 1)
    page.press(Keys.TAB)
    assert focused(page).startswith("1Sentence 0.3")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    assert page.find(".picked").text.startswith("Sentence 1.3")
    assert [button.get_attribute("tabindex") for button in page.all("#items .w")] == ["-1", "-1", "0", "-1"]
    page.press(Keys.END)
    page.settle()
    picked = page.find(".s.picked")
    assert picked.text == "Sentence 3.30 says that genes map to loci." and page.in_sight(picked)
    assert page.all("#items .w")[3].get_attribute("aria-pressed") == "true"
    score = f"score {LONG.scores[180]:g}, rank {sorted(LONG.scores, reverse=True).index(LONG.scores[180]) + 1}."
    assert page.status() == f"Sentence 181 of 200, in “Section 3”: {score} Chosen: 4 of 4 in the summary."
    assert float(page.find("#cursor").get_attribute("width") or 0) > 0
    page.run("byId('document').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.find(".picked").text.startswith("Sentence 3.31")
    page.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.find(".picked").text.startswith("Sentence 3.29")
    page.press(Keys.ESCAPE)
    assert not page.all(".picked, .pinned, #cursor") and page.status().startswith("Choose a sentence")


def test_only_the_chosen_sentences_are_shown_on_request(opened: Opener) -> None:
    long_one = long(25, 800, tuple(range(500, 20_000, 1000)))
    page = opened(extractions(example(), HEADINGS_ALONE, long_one))
    page.find("#only").click()
    shown = "\n".join(("… 1 sentence", "Methods", "… 1 sentence 1They were counted twice. … 2 sentences"))
    assert page.find("#document").text == f"{shown}\nResults\n2Genes map to loci.\nAcknowledgements"
    page.all(".gap")[2].click()
    assert not page.find("#only").is_selected() and page.find(".picked").text == "A test was made."
    assert len(page.all(".s")) == 6
    choose(page, 1)
    assert page.find("#about").text == "hiporank chose 0 of 0 sentences: 0 of 0 words." and not page.all(".s")
    page.find("#curve").click()
    page.find("#only").click()
    assert not page.all("#items li") and page.find("#status").text == ""
    # So it is among twenty thousand sentences.
    page.find("#only").click()
    choose(page, 2)
    last = page.all("#items .w")[-1]
    page.browser.execute_script("arguments[0].scrollIntoView()", last)
    last.click()
    page.settle()
    assert page.in_sight(page.find(".picked")) and page.find(".picked").text.startswith("Sentence 24.300")
    middle = "const b = arguments[0].getBoundingClientRect(); return (b.top + b.bottom) / 2 / innerHeight"
    assert page.run(middle, page.find(".picked")) == pytest.approx(0.55, abs=0.1)
    page.find("#only").click()
    assert len(page.all(".s")) == 20 and len(page.all(".gap")) == 20 * 2 + 5


def test_the_chart_names_the_sections_and_is_a_way_into_the_document(opened: Opener) -> None:
    page = opened(extractions(LONG))
    assert [label.text for label in page.all("#curve .label")] == [f"Section {i}" for i in range(4)]
    assert [flag.text for flag in page.all("#curve .flag")] == ["1", "2", "4"]  # 3 would cover 2

    def click(place: float, beside: int = 0) -> None:
        frame = page.find("#curve .frame")
        at = round(frame.rect["width"] * place) + beside
        ActionChains(page.browser).move_to_element_with_offset(frame, at, 0).click().perform()
        page.settle()

    click(0.2)
    assert page.run("return picked") == pytest.approx(140, abs=2) and page.in_sight(page.find(".picked"))
    # Beside the mark of a chosen sentence, that one is meant.
    click(0.4025, beside=3)
    assert page.run("return picked") == 180
    page.find("#only").click()
    click(-0.4)
    assert page.run("return picked") == 52


def test_hostile_documents_stay_text(opened: Opener) -> None:
    tokens = [f"\n\n{EVIL}", *explained().document[1:]]
    hostile = replace(explained(), document=tokens, settings={EVIL: EVIL})
    page = opened(explanations((EVIL, [hostile]), (EVIL, [hostile])))
    assert page.find("h1").text == page.find(".s").text == page.find("option").text == EVIL
    assert page.run("return document.title") == EVIL and not page.all("img")
    page.run("document.title = 'same'; window.svg = new XMLSerializer().serializeToString(figure())")
    page.run("new DOMParser().parseFromString(svg, 'image/svg+xml')")
    assert "<script" not in page.run("return svg") and "<img" not in page.run("return svg")
    extraction = example(tuple(unit._replace(text=EVIL) for unit in UNITS))
    extraction = extraction._replace(outline=replace(extraction.outline, headings=(EVIL,) * 4))
    page = opened(extractions(extraction, reference=EVIL))
    assert page.find("#reference").text == page.find(".s").text == page.find("#document h2").text == EVIL
    assert not page.all("img") and page.run("return document.title") == "0.txt"
    page.run("new DOMParser().parseFromString(window.svg = written(figure()), 'image/svg+xml')")
    assert "<script" not in page.run("return svg") and "<img" not in page.run("return svg")


def test_figures_are_saved_as_svg_and_png(opened: Opener, tmp_path: Path) -> None:
    tag = "{http://www.w3.org/2000/svg}text"
    page = opened(explanations(("a b.txt", [replace(explained(), settings={"beam": "2"})]), model="tiny"))
    page.all("#items .w")[1].click()
    root, picture = page.save_figure(tmp_path / "explanation", "a-b.txt")
    texts = [element.text or "" for element in root.iter(tag)]
    assert texts[:2] == ["a", "b.txt"]
    assert [f"w{i}" for i in range(5)] == [text for text in texts if re.fullmatch(r"w\d", text)]
    assert {"gene", "map", "token of the document", "tiny;", "beam:"} <= set(texts)
    assert picture.startswith(b"\x89PNG")
    # Twice the size, to be sharp in print.
    assert int.from_bytes(picture[16:20]) == pytest.approx(2 * float(root.get("width") or 0), abs=2)
    root, picture = opened(extractions(example())).save_figure(tmp_path / "extraction", "0.txt")
    texts = [element.text or "" for element in root.iter(tag)]
    assert {"Genes map to loci.", "Methods", "1", "Summary", "loci.", "hiporank;"} <= set(texts)
    assert picture.startswith(b"\x89PNG")


def stands_out(page: OpenPage, *inks: tuple[str, str]) -> None:
    for text, ground in inks:
        ink = page.colour(text, "fill" if text.startswith("#curve") else "color")
        assert contrast(ink, page.colour(ground, "backgroundColor")) >= 4.5, text


def on_shades(page: OpenPage, shades: set[tuple[float, ...]]) -> None:
    ink, paper = page.colour(".s", "color"), page.colour("body", "backgroundColor")
    for *shade, alpha in shades:
        ground = tuple(alpha * a + (1 - alpha) * b for a, b in zip(shade, paper, strict=False))
        assert contrast(ink, ground) >= 4.5, shade


@SCHEMES
def test_text_stands_out_in_light_and_dark_and_on_every_shade(opened: Opener, scheme: str) -> None:
    page = opened(explanations(("genes.txt", [GENES]), ("cells.txt", [SUPPORTED])))
    page.turn(scheme)
    assert (luminance(page.colour("body", "backgroundColor")) > 0.8) == (scheme == "light")
    page.find("#layer").send_keys(Keys.HOME)
    shades = {page.colour(".s", "backgroundColor")}
    page.all("#items .w")[0].click()
    shades.add(page.colour(".s.strongest", "backgroundColor"))
    assert len(shades) == 2
    on_shades(page, shades)
    stands_out(page, ("body", "body"), ("aside", "aside"), ("#status", "aside"), ("#about", "body"))
    stands_out(page, ("#save-svg", "body"), *((f"#curve {end}", "body") for end in ("#top", "#right-top", ".middle")))
    choose(page, 1)
    stands_out(page, (".badge", ".badge"), (".support", "aside"))
    page = opened(extractions(LONG))
    assert (luminance(page.colour("body", "backgroundColor")) > 0.8) == (scheme == "light")
    found = page.run("return [...document.querySelectorAll('.s')].map(s => getComputedStyle(s).backgroundColor)")
    places = [found.index(shade) for shade in set(found)]
    assert len(places) == 5
    nth = "#document p:nth-of-type({}) .s:nth-of-type({})"
    on_shades(page, {page.colour(nth.format(at // 8 + 1, at % 8 + 1), "backgroundColor") for at in places})
    stands_out(page, (".n", ".n"), ("#status", "aside"))
    stands_out(page, *((f"#curve {text}", "body") for text in (".flag", ".label", ".end")))


def test_a_phone_shows_an_explanation_without_scrolling_sideways(opened: Opener) -> None:
    opened.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page = opened(explanations(("genes.txt", [GENES])))
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.all("#items .w")[1].click()
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
    # Held sideways, the chart stands beside the summary.
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIDEWAYS)
    page.settle()
    script = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top, b.bottom]"
    panel, words, beside = (page.run(script, selector) for selector in (".panel", "#items", "#curve"))
    assert beside[0] > words[0] and panel[1] <= beside[1] and beside[2] <= panel[2] <= panel[1] + 390 / 2 + 1
    # The support of sentences is folded.
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page = opened(explanations(("cells.txt", [SUPPORTED, SUPPORTED])))
    assert not page.find("#sentences").is_displayed()
    page.find("#support-part summary").click()
    assert page.find("#sentences").is_displayed()
    assert page.run("return document.documentElement.scrollWidth") <= 390


def test_a_phone_shows_an_extraction_without_scrolling_sideways(opened: Opener) -> None:
    opened.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page = opened(extractions(LONG, reference="Genes map to loci."))
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


@pytest.fixture
def dropping(tmp_path: Path) -> Iterator[OpenPage]:
    """Open the page of `serve` in a browser of its own, whose log holds refused documents."""
    with served(tmp_path) as page, chromium() as browser:
        browser.get(f"http://localhost:{page.port}/")
        yield OpenPage(browser)


def test_a_document_is_dropped_on_serve_and_its_summary_is_shown(dropping: OpenPage, tmp_path: Path) -> None:
    def wait_for(text: str, within: str = "#status") -> None:
        # A frame may still be empty.
        shown = lambda _: text in " ".join(each.text for each in dropping.all(within))  # noqa: E731
        WebDriverWait(dropping.browser, 20).until(shown, f"{within} does not say {text!r}")

    bees, broken = tmp_path / "bees.md", tmp_path / "broken.pdf"
    bees.write_text("# Bees\n\n## Methods\n\nWe counted all bees. They were fed.\n\n## Results\n\nAll bees fly fast.\n")
    broken.write_text("nonsense")
    assert not dropping.find("#summary").is_displayed()
    dropping.find("#words").send_keys("4")
    dropping.find("#file").send_keys(str(bees))
    wait_for("bees.md: auto, ")
    dropping.browser.switch_to.frame(dropping.find("#summary"))
    wait_for("All bees fly fast.", "body")
    assert "bees.md" in dropping.find("body").text
    dropping.browser.switch_to.default_content()
    first = dropping.find("#open").get_attribute("href")
    dropping.run("document.querySelector('#method').value = 'lead'")
    dropping.find("#again").click()
    wait_for("bees.md: lead, ")
    assert dropping.find("#open").get_attribute("href") != first
    for scheme in ("light", "dark"):
        dropping.turn(scheme)
        ground = (255, 255, 255) if scheme == "light" else dropping.colour("#drop", "backgroundColor")
        assert contrast(dropping.colour("#save", "color"), ground) >= 4.5
    dropping.find("#file").send_keys(str(broken))
    wait_for("broken.pdf must be a PDF file")
    assert all("422" in each["message"] for each in dropping.browser.get_log("browser"))
    dropping.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    dropping.browser.refresh()
    assert dropping.run("return document.documentElement.scrollWidth <= innerWidth")

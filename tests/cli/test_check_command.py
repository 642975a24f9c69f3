"""`pyramidions check`."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from browser import Opener
from invoking import run, succeed
from texts_in_languages import PAPERS

from pyramidions.scoring.metric import Judged

PAPER = "# Bees\n\n## Methods\n\nWe counted bees in Rome. They were fed.\n\n## Results\n\nAll bees fly fast.\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    summary, paper = tmp_path / "summary.txt", tmp_path / "paper.md"
    summary.write_text("All bees fly far. In 2031 Obama paid. Yes.")
    paper.write_text(PAPER)
    return summary, paper


def test_each_sentence_is_told_with_its_support_and_what_is_missing(files: tuple[Path, Path]) -> None:
    done = succeed("check", *files)
    assert done.stdout.splitlines() == [
        "1. [67%] All bees fly far.",
        "   > [67%] All bees fly fast. (Results)",
        "2. [0%, without support] In 2031 Obama paid.",
        "   not in the document: 2031, Obama",
        "3. [too short to tell] Yes.",
        "With support: 1 of 2 sentences, 1 too short to tell. Numbers and names that are not in the document: 2.",
    ]
    done = run("check", "-", files[1], text="All bees fly fast.")
    assert done.stdout.splitlines()[0] == "1. [100%] All bees fly fast."


def test_all_of_it_is_in_a_file_that_a_second_run_replaces(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "check.json"
    for _ in range(2):
        succeed("check", *files, "--json", out)
    written = json.loads(out.read_text())
    assert (written["checked"], written["document"]) == ("summary.txt", "paper.md")
    first, second, third = written["sentences"]
    source = {"sentence": "All bees fly fast.", "position": 2, "section": "Results", "share": 0.6667}
    assert first["by_words"] == [source] and first["supported"] is True and "entailment" not in first
    assert (second["missing"], second["recall"], third["recall"]) == (["2031", "Obama"], 0.0, None)


class Classifier:
    is_binary = False

    def signature(self) -> str:
        return "a model"

    def judged(self, premises: Sequence[str], claim: str) -> Judged:
        return Judged(np.array([[0.1, 0.2], [0.3, 0.1], [0.9, 0.0]]), 2)


def test_a_classifier_and_the_words_tell_on_a_page_what_supports_a_sentence(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opener
) -> None:
    monkeypatch.setattr("pyramidions.scoring.encoders.readers.EntailmentClassifier", lambda *_: Classifier())
    out, page_file = tmp_path / "check.json", tmp_path / "page.html"
    done = succeed("check", *files, "--entailment", "a", "--device", "cpu", "--json", out, "--explain", page_file)
    assert done.stdout.splitlines()[1] == "   entailed 90%, contradicted 20%"
    assert done.stdout.endswith(" Pairs that were truncated: 6.\n")
    written = json.loads(out.read_text())
    assert written["entailment_model"] == "a model"
    entailment = {"probability": 0.9, "sentence": "All bees fly fast.", "position": 2, "section": "Results"}
    assert written["sentences"][0]["entailment"] == entailment
    assert written["sentences"][0]["contradiction"]["position"] == 0
    page = opened(page_file.read_text())
    told = [each.text for each in page.all("#sentences .support summary")]
    assert told[:3] == ["By words: 67% of its pairs of words", "Entailed: 90%", "Contradicted: 20%"]
    assert page.find("#about").text.startswith("With support: 1 of 2 sentences, ")

    files[0].write_text("All bees fly fast. All bees fly slow. In 2031 Obama paid. Yes.")
    succeed("check", *files, "--explain", page_file)
    page = opened(page_file.read_text())
    notes = [note.text for note in page.all("#items .beside")]
    assert notes[1:] == ["67%", "0%, without support; not in the document: 2031, Obama", "too short to tell"]
    page.all("#items button")[1].click()
    assert page.status() == "Sentence 3 of 3, in “Results”. Supports: 1 and 2 of 4 in the summary."
    assert page.find("#document button.n").text == "1 and 2"
    page.all("#items button")[2].click()
    assert not page.all("#document .picked")
    assert page.status() == "No sentences of the document support it enough."
    page.find("#only").click()
    assert page.find("#document").text.endswith("All bees fly fast.")
    assert [each.text for each in page.all("#sentences .badge")] == ["without support"]


def test_the_document_tells_the_language_of_both(tmp_path: Path) -> None:
    summary, document, out = (tmp_path / name for name in ("summary.txt", "paper.txt", "checks.json"))
    summary.write_text("Nach Nr. 5 stieg die Ernte der Rüben.")
    document.write_text(PAPERS["de"].text)
    succeed("check", summary, document, "--json", out)
    found = json.loads(out.read_text())
    # Without a name it is printed, as by `extract --json`.
    assert json.loads(run("check", summary, document, "--json").stdout) == found
    assert found["language"] == "de"
    assert len(found["sentences"]) == 1

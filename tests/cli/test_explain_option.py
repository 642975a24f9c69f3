"""`pyramidions summarize --explain`: the summary as ever, and a page and its support beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
from explanations import example, page_data, texts_of
from invoking import run

from pyramidions.inference import ExplanationPage, Summarizer, Summary, html_page
from pyramidions.inference.summary import as_plain
from pyramidions.text.support import SummarySentence, Supporting

# In float32, as `Summarizer` computes by default
SHORT = ["--beam", 1, "--min-len", 3, "--max-len", 3, "--precision", "float32"]


def without_support(line: str) -> str:
    about = json.loads(line)
    del about["support"]
    return json.dumps(about, ensure_ascii=False)


def test_the_page_is_that_of_the_api(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("One two three. Four five.")
    command = ["summarize", checkpoint, "a.txt", *SHORT]
    assert run(*command, "--explain", "p.html").stdout == run(*command).stdout != ""
    explanation = Summarizer.from_pretrained(checkpoint).explain(
        "One two three. Four five.", beam=1, min_len=3, max_len=3
    )
    name = "/".join(checkpoint.parts[-2:])
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == html_page(explanation, "a.txt", name)


def test_several_documents_and_their_pieces_are_on_one_page(checkpoint: Path, tmp_path: Path) -> None:
    long = " ".join(f"Sentence {i} is about cells." for i in range(40))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": long}) + '\n{"text": "Two."}\n')
    page = tmp_path / "p.html"
    command = ["summarize", checkpoint, tmp_path / "a.jsonl", *SHORT, "--long", "chunk", "--json"]
    explained = run(*command, "--explain", page).stdout.splitlines()
    # What supports each sentence is all that is added.
    assert [without_support(line) for line in explained] == run(*command, "--batch-size", "1").stdout.splitlines()
    first, second = page_data(page.read_text(encoding="utf-8"))["documents"]
    assert (first["name"][-9:], second["name"][-9:]) == ("a.jsonl:1", "a.jsonl:2")
    assert len(texts_of(first)) == json.loads(explained[0])["pieces"] > 1
    # Nothing of a long document is left out.
    assert " ".join(texts_of(first)).split() == long.split()


def test_a_page_that_is_full_says_so(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExplanationPage.__init__.__wrapped__, "__defaults__", ("", 1))
    (tmp_path / "a.txt").write_text("One.")
    page = tmp_path / "p.html"
    done = run("summarize", checkpoint, tmp_path / "a.txt", *SHORT, "--explain", page)
    assert done.exit_code == 1 and done.stdout.strip()
    assert str(page) in done.stderr
    assert page_data(page.read_text(encoding="utf-8"))["left_out"] == 1


def test_support_of_all_pieces_is_in_one_list() -> None:
    def support(*summaries: Summary) -> Any:
        return as_plain(summaries).get("support")

    summary = example().summary
    copied = SummarySentence(
        "It is so.", 2 / 3, (Supporting("So it is so.", 3, 8, 2 / 3),), (Supporting("No.", 0, 2, 0.123456),)
    )
    made_up = SummarySentence("Never seen.", 0.0)
    assert support(summary._replace(sentences=(copied,)), summary._replace(sentences=(made_up,))) == [
        {
            "sentence": "It is so.",
            "supported": True,
            "recall": 0.6667,
            "by_words": [{"sentence": "So it is so.", "share": 0.6667}],
            "by_attention": [{"sentence": "No.", "share": 0.1235}],
        },
        {"sentence": "Never seen.", "supported": False, "recall": 0.0, "by_words": [], "by_attention": None},
    ]
    assert support(summary) is None
    assert support(summary._replace(sentences=())) == []

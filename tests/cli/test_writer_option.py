"""`pyramidions summarize --writer`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from invoking import run
from writer_stand_in import message, writer

from pyramidions.base.reading import WRITER_KEY

SENTENCE = "All bees in Rome fly fast."


@pytest.fixture(autouse=True)
def without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WRITER_KEY, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("a.txt", SENTENCE),
        ("b.txt", "Refuse this."),
        ("c.md", f"## Notes\n\nNo bee.\n\n## Results\n\n{SENTENCE}\n"),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def answer(body: dict[str, Any]) -> tuple[int, bytes]:
    refused = "Refuse" in body["messages"][-1]["content"]
    return (500, b"{}") if refused else message("All bees in Rome fly. 77 of them.")


def test_one_document_is_summarized_and_checked(folder: Path) -> None:
    with writer(answer) as server:
        done = run("summarize", "--writer", server.url, "--writer-model", "m", folder / "a.txt", "--check")
    assert done.exit_code == 0, done.output
    assert done.stdout == (
        f"{folder}/a.txt (With support: 1 of 2 sentences. Numbers and names that are not in the document: 1 (77)):\n"
        "All bees in Rome fly. 77 of them.\n"
    )


def test_a_document_that_the_server_refuses_is_named_and_the_others_go_on(folder: Path) -> None:
    with writer(answer) as server:
        done = run("summarize", "--writer", server.url, "--writer-model", "m", "--json", folder)
    assert done.exit_code == 1
    assert re.findall(r"b\.txt: .* (\d+) Internal", done.stderr) == ["500"] and server.url in done.stderr
    first, last = map(json.loads, done.stdout.splitlines())
    assert (first["name"], last["name"]) == (f"{folder}/a.txt", f"{folder}/c.md")
    assert (first["writer"], first["summary"]) == ("m", "All bees in Rome fly. 77 of them.")
    assert (first["long"], first["pieces"], first["read_tokens"], first["document_tokens"]) == ("extract", 1, 7, 7)


def test_a_model_that_is_not_there_ends_the_run(folder: Path) -> None:
    with writer(lambda _: (404, b'{"error": "no model m"}')) as server:
        done = run("summarize", "--writer", server.url, "--writer-model", "m", folder)
    assert done.exit_code == 1 and len(server.asked) == 1
    assert re.findall(r"(\d+) Not Found \(no model m\)", done.stderr) == ["404"] and server.url in done.stderr
    with writer(answer) as server:
        done = run("summarize", "--writer", server.url, "--writer-model", "m", "--writer-reads", 5, folder / "a.txt")
    assert done.exit_code == 1 and "--writer-reads" in done.stderr


def test_a_long_document_is_shortened_and_the_output_says_so(folder: Path) -> None:
    paper = folder / "c.md"
    paper.write_text(f"{paper.read_text()} Others sleep all day long, and nobody knows why they do.\n")
    meeting = folder / "d.txt"
    meeting.write_text("Ann: We went to the sea and danced.\nBob: They saw it by day.\n" * 9)
    with writer(answer) as server:
        line = ("summarize", "--writer", server.url, "--writer-model", "m", "--writer-reads", 14, "--writer-words", 9)
        done = run(*line, paper)
        assert "selected by meetings" in run(*line, meeting).stdout
        by_section = run(*line, paper, "--long", "sections", "--format", "list")
        beginning = run(*line, paper, "--long", "truncate")
    assert "9 words" in server.prompts[0] and f"## Results\n\n[...] {SENTENCE} [...]\n" in server.prompts[0]
    said = "1 of 3 sentences, selected by hiporank, were read"
    assert done.stdout.startswith(f"{paper} ({said}):\n"), done.stdout
    said = "by section: Results; only the beginning of Results was read; 5 of 29 tokens stand in none of these sections"
    assert by_section.stdout.startswith(f"{paper} ({said}):\nResults\n  All bees in Rome fly."), by_section.stdout
    said = "only the first about 5 of 29 tokens were read"
    assert beginning.stdout.startswith(f"{paper} ({said}):\n"), beginning.stdout

"""`pyramidions segments`: texts in, segments out."""

import json
from pathlib import Path

import pytest
from invoking import run, succeed
from small_language_models import saved

from pyramidions.cli import segments as module
from pyramidions.cli import worker
from pyramidions.inference import Segmenter

TEXT = "The cat, the hat and 1 cat."


@pytest.fixture(scope="module")
def whitespace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("whitespace"), "whitespace")


def test_standard_input_is_one_text_whose_segments_end_at_bars(whitespace: Path) -> None:
    done = succeed("segments", whitespace, text=TEXT)
    assert done.stdout.splitlines() == [
        "standard input:",
        "the |cat |the |hat |and |one |cat",
        "  27 characters in 6 segments: 4.50 characters each (shortening factor)",
        "  100.0% of boundaries stand at spaces, 100.0% of spaces are boundaries",
        "  most frequent: the␣ 2, cat␣ 1, hat␣ 1, and␣ 1, one␣ 1",
        "",
    ]
    assert done.stderr == ("standard input: 2 characters outside the alphabet 'en' became spaces: “,” 1, “.” 1.\n")


def test_objects_have_what_the_segmenter_finds(tmp_path: Path) -> None:
    model = saved(tmp_path, "gumbel")
    (tmp_path / "papers.jsonl").write_text(json.dumps({"id": "a7", "article": TEXT}) + '\n{"article": "Zwei"}\n')
    done = succeed("segments", model, tmp_path / "papers.jsonl", "--json")
    first, second = map(json.loads, done.stdout.splitlines())
    found = Segmenter.from_pretrained(model).segment(TEXT, entropies=99)
    assert found.probabilities is not None and found.entropies is not None
    assert first == {
        "id": "a7",
        "name": f"{tmp_path}/papers.jsonl:1",
        "segments": found.segments,
        "rest": found.rest,
        "probabilities": pytest.approx(found.probabilities.tolist(), abs=1e-4),
        "shortening_factor": found.shortening_factor,
        "boundaries_at_spaces": found.boundaries_at_spaces,
        "spaces_at_boundaries": found.spaces_at_boundaries,
        "outside": {",": 1, ".": 1},
        "entropies": pytest.approx(found.entropies.tolist(), abs=1e-4),
    }
    assert (second["id"], second["spaces_at_boundaries"]) == ("2", None)


def test_a_text_without_letters_is_reported_and_the_others_are_shown(whitespace: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("123...")
    (tmp_path / "b.txt").write_text("?!")
    (tmp_path / "c.txt").write_text("ab")
    done = run("segments", whitespace, tmp_path)
    assert done.exit_code == 1
    assert str(tmp_path / "b.txt") in done.stderr
    assert {"one |two |three", "ab", "  no boundary"} <= {*done.stdout.splitlines()}


def test_a_terminal_gets_lines_of_its_width_in_colours(whitespace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Segmenter.from_pretrained(whitespace, "cpu").segment("one two three four five")
    assert list(module._lines(found.segments, 11)) == [["one ", "two "], ["three "], ["four "]]
    monkeypatch.setattr(worker, "_is_terminal", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    layout = worker.find_layout(None, False, None, named=True)
    assert layout.kind == "list" and "\x1b[" in module._shown("a", found, layout)
    monkeypatch.setenv("NO_COLOR", "1")
    layout = worker.find_layout(None, False, None, named=True)
    assert "\x1b[" not in module._shown("a", found, layout)

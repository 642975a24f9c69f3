"""`pyramidions extract --tokens`: documents for the prompt of a language model."""

import json
import re
from pathlib import Path

import pytest
from invoking import run, succeed
from small_tokenizers import bart

PAPER = (
    "# Bees\n\n## Methods\n\nWe counted all bees in Rome. They were fed.\n\n## Results\n\nAll bees in Rome fly fast.\n"
)


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    (tmp_path / "paper.md").write_text(PAPER)
    return tmp_path / "paper.md"


def test_a_document_is_shortened_to_its_tokens_or_whole_where_it_fits(paper: Path, tmp_path: Path) -> None:
    done = succeed("extract", paper, "--tokens", 13)
    assert done.stdout == "# Bees\n\n## Results\n\n[...] All bees in Rome fly fast.\n"
    kept, method = done.stderr.splitlines()
    assert kept == "Kept 13 of 26 tokens (estimated, 4 characters each): 1 of 3 sentences."
    assert method.startswith("The document was extracted by the method hiporank (not English, or not of 15 to ")
    out = tmp_path / "prompt.md"
    done = run("extract", "--tokens", 27, "-o", out, text=PAPER)
    assert out.read_text() == PAPER and done.stdout == ""
    assert done.stderr == "The document was kept whole, within --tokens.\n"
    assert run("extract", paper, "--tokens", 15, "--method", "lead").stdout == (
        "# Bees\n\n## Methods\n\nWe counted all bees in Rome. [...]\n"
    )


def test_a_tokenizer_counts(paper: Path, tmp_path: Path) -> None:
    tokenizer = bart()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    done = succeed("extract", paper, "--tokens", 40, "--tokenizer", tmp_path)
    kept = len(tokenizer.encode(done.stdout.strip(), add_special_tokens=False).ids)
    whole = len(tokenizer.encode(PAPER.strip(), add_special_tokens=False).ids)
    assert kept <= 40
    assert re.findall(r"\d+", done.stderr.splitlines()[0]) == [str(kept), str(whole), "1", "3"]


def test_each_document_stands_below_its_name_and_one_that_has_no_room_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(PAPER)
    (tmp_path / "b.txt").write_text("None was lost.")
    (tmp_path / "c.txt").write_text("They were fed on each day of the year, from morning until late in the evening.")
    done = run("extract", tmp_path, "--tokens", 13)
    assert done.stdout.split("\n\n") == [
        *(f"{tmp_path / 'a.md'}:\n# Bees", "## Results", "[...] All bees in Rome fly fast."),
        *(f"{tmp_path / 'b.txt'}:\nNone was lost.", ""),
    ]
    assert done.exit_code == 1 and str(tmp_path / "c.txt") in done.stderr
    assert re.findall(r"(\d) of (\d) documents was kept whole", done.stderr) == [("1", "2")]


def test_json_says_how_many_tokens_there_are(tmp_path: Path) -> None:
    lines = [{"id": "a", "text": PAPER}, {"id": "b", "text": "None was lost."}]
    (tmp_path / "papers.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    done = run("extract", tmp_path / "papers.jsonl", "--tokens", 13, "--json")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["summary"] == "# Bees\n\n## Results\n\n[...] All bees in Rome fly fast."
    assert (first["tokens"], first["document_tokens"]) == (13, 26)
    assert [each["position"] for each in first["sentences"]] == [2]
    assert (second["summary"], second["tokens"], second["sentences"]) == ("None was lost.", 4, None)

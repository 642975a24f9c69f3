"""`pyramidions summarize`: files in, summaries out, and a word about each that cannot be read."""

import json
import lzma
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import SAMPLE
from documents import PAGE, docx, pdf
from invoking import run, succeed
from texts_in_languages import PAPERS
from torch import Tensor

from pyramidions.cli import main
from pyramidions.inference import Summarizer, Summary, export_model, load_model
from pyramidions.models import build
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.sublayer import Memory
from pyramidions.scoring import check_summary

# In float32, as `Summarizer` computes by default
SHORT = ["--beam", 1, "--min-len", 3, "--max-len", 3, "--precision", "float32"]


@pytest.fixture(scope="module")
def article() -> str:
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        return json.loads(papers.readline())["article"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a document of each kind."""
    (tmp_path / "a.txt").write_text("\ufeffOne two three.", encoding="utf-8")
    (tmp_path / "b.md").write_text("# One\n\ntwo three.")
    (tmp_path / "c.html").write_text(PAGE)
    (tmp_path / "d.PDF").write_bytes(pdf("One two three."))
    (tmp_path / "e.jsonl").write_text('{"body": "One two three."}\n\n{"body": "Four."}\n')
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    return tmp_path


def alone(checkpoint: Path, text: str = "One two three.") -> Summary:
    return Summarizer.from_pretrained(checkpoint).summarize([text], beam=1, min_len=3, max_len=3)[0]


def test_a_folder_is_summarized_file_by_file(checkpoint: Path, folder: Path) -> None:
    out = folder / "out.jsonl"
    succeed("summarize", checkpoint, folder, *SHORT, "--field", "body", "--json", "-o", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [Path(row["name"]).name for row in rows] == ["a.txt", "b.md", "c.html", "d.PDF", "e.jsonl:1", "e.jsonl:3"]
    expected = alone(checkpoint)
    for row in (rows[0], rows[2], rows[3], rows[4]):
        assert row["summary"] == expected.text and row["scores"] == [pytest.approx(expected.score, abs=1e-4)]
        assert row["document_tokens"] == row["read_tokens"] == expected.document_tokens


def test_what_cannot_be_read_is_named(checkpoint: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("latin.txt").write_bytes("café".encode("latin-1"))
    Path("loop.txt").symlink_to("loop.txt")
    os.mkfifo("pipe.txt")
    Path("lines.jsonl").write_bytes(b'{"text": "One."}\n{"text": 2}\nnot JSON\n{"text": " "}\n"\xff"\n{"text": "Six."}')
    Path("fields.jsonl").write_bytes(b'{"body": "The wrong field."}\n' * 9)
    names = ["a.txt", "latin.txt", "missing.txt", "picture.png", "loop.txt", "pipe.txt", "lines.jsonl", "fields.jsonl"]
    done = run("summarize", checkpoint, *names, *SHORT)
    assert done.exit_code == 1
    # Where the first line is no document, the file is refused in one sentence.
    refused = [*names[1:6], *(f"lines.jsonl:{number}" for number in (2, 3, 4, 5)), "fields.jsonl:1"]
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert [error.split()[1].rstrip(":") for error in errors] == refused
    # Of several files given, the name says whose summary it is.
    assert done.stdout.startswith(f"a.txt:\n{alone(checkpoint).text}\n\n")
    named = [line for line in done.stdout.splitlines() if line.endswith(":")]
    assert named == ["a.txt:", "lines.jsonl:1:", "lines.jsonl:6:"]


def test_work_that_takes_longer_shows_how_far_it_is_even_in_a_batch_in_which_nobody_counts(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.txt").write_text("A word.")
    (tmp_path / "two.txt").write_text("Two words.")
    command = [str(argument) for argument in ("summarize", checkpoint, tmp_path, *SHORT, "--batch-size", 1)]
    with pytest.raises(SystemExit, match="0"):
        main(command)
    assert "%" not in capfd.readouterr().err
    shown: list[str] = []
    quick = Summarizer.write

    def waiting(self: Summarizer, *arguments: object, **keywords: object) -> object:
        while not any("summarizing:   0%" in text for text in shown):
            time.sleep(0.01)
            shown.append(capfd.readouterr().err)
        return quick(self, *arguments, **keywords)

    monkeypatch.setattr(Summarizer, "write", waiting)
    monkeypatch.setattr("pyramidions.cli.reading_report.PATIENCE", 0.01)
    monkeypatch.setattr("pyramidions.files.progress.PATIENCE", 0.0)
    with pytest.raises(SystemExit, match="0"):
        main(command)
    ended = capfd.readouterr().err
    assert "summarizing: 100%" in ended and "17.0/17.0" in ended


def test_files_that_are_not_read_are_named_once(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One word.")
    (tmp_path / "b.docx").write_bytes(docx("Two words."))
    for number in range(24):
        (tmp_path / f"{number:02}.png").touch()
    os.mkfifo(tmp_path / "pipe.txt")
    done = succeed("summarize", checkpoint, tmp_path, *SHORT)
    assert done.stderr.startswith(f"Skipped 25 files: {tmp_path}/00.png, ")
    assert done.stderr.endswith(f"{tmp_path}/19.png and 5 more.\nComputes in float32.\n")
    assert [line for line in done.stdout.splitlines() if line.endswith(":")] == [
        f"{tmp_path}/a.txt:",
        f"{tmp_path}/b.docx:",
    ]


def test_repeated_ngrams_can_be_forbidden(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One word. " * 20)
    command = ("summarize", checkpoint, tmp_path / "a.txt", "--beam", 1)
    forbidden = run(*command, "--no-repeat-ngram-size", 1, "--min-len", 47)
    assert forbidden.exit_code == 0 and forbidden.stdout != run(*command).stdout


def test_a_list_of_summaries_is_by_section_and_wrapped(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "paper.md"
    path.write_text("# Introduction\n\nOne two three.\n\n# Results\n\nTwo three four.\n")

    def summarize(*options: str) -> str:
        return run("summarize", checkpoint, path, *SHORT, "--long", "sections", *options).stdout

    found = json.loads(summarize("--format", "json"))
    assert found == json.loads(summarize("--json"))
    body = "\n\n".join(f"{each['heading']}\n  {each['summary']}" for each in found["sections"])
    assert summarize("--format", "list").partition(":\n")[2] == f"{body}\n"
    assert summarize().endswith(f":\n{found['summary']}\n")


def test_json_tells_the_share_that_a_model_copied(checkpoint: Path, tmp_path: Path) -> None:
    model = load_model(checkpoint)
    config = replace(model.config, output="pointer")
    pointing = replace(model, config=config, transformer=build(config, model.tokenizer.vocab_size, 1))
    export_model(pointing, tmp_path / "export", "# A model\n")
    (tmp_path / "paper.txt").write_text("One two three.")
    found = json.loads(run("summarize", tmp_path / "export", tmp_path / "paper.txt", *SHORT, "--json").stdout)
    assert 0 < found["copied"] < 1


def test_a_short_text_says_that_its_summary_is_shorter_than_usual(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A word.")
    count = len(Summarizer.from_pretrained(checkpoint).model.tokenizer.encode("A word."))
    most = 2 ** (count.bit_length() - 1)
    said = f"{tmp_path}/a.txt (the text is short: at most {most} tokens):\n"
    assert run("summarize", checkpoint, tmp_path / "a.txt").stdout.startswith(said)
    # A limit that the user gives is not lowered.
    assert "short" not in run("summarize", checkpoint, tmp_path / "a.txt", "--max-len", 9).stdout


def test_a_check_says_which_sentences_have_support(checkpoint: Path, tmp_path: Path) -> None:
    files = first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("One two three.")
    second.write_text("Four five six.")
    command = ("summarize", checkpoint, *files, *SHORT, "--check")
    found = [json.loads(line) for line in run(*command, "--json").stdout.splitlines()]
    checked = [check_summary(each["summary"], path.read_text()) for each, path in zip(found, files, strict=True)]
    assert [each["check"] for each in found] == [each.to_dicts() for each in checked]
    assert [f"{said}." for said in re.findall(r"With support: .* document: [\d,]+", run(*command).stdout)] == [
        each.told for each in checked
    ]


def test_a_document_without_text_for_the_model_is_passed_over(checkpoint: Path, tmp_path: Path) -> None:
    # What a tokenizer takes for a space is text to nobody else.
    texts = {"first": "One two three.", "odd": "▁", "german": PAPERS["de"].text}
    files = [tmp_path / f"{name}.txt" for name in texts]
    for path, text in zip(files, texts.values(), strict=True):
        path.write_text(text)
    done = run("summarize", checkpoint, *files, *SHORT, "--check", "--json")
    assert done.exit_code == 1 and str(files[1]) in done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(Path(each["name"]).stem, each["language"]) for each in found] == [("first", "en"), ("german", "de")]


def test_documents_of_like_length_share_a_batch(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": "A word. " * n}) + "\n" for n in (1, 30, 2, 25)))
    batches: list[list[int]] = []
    read = BeamSearch.read

    def watched(self: BeamSearch, transformer: Transformer, tokens: Tensor) -> tuple[Memory, ...]:
        batches.append(tokens.ne(transformer.padding_idx).sum(dim=1).tolist())
        return read(self, transformer, tokens)

    monkeypatch.setattr(BeamSearch, "read", watched)
    succeed("summarize", checkpoint, tmp_path / "a.jsonl", *SHORT, "--batch-size", 2)
    (a, b), (c, d) = batches
    assert a > b > 4 * c > 4 * d

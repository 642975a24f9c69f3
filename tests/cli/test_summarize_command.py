"""`pyramidions summarize`: files in, summaries out, and a word about each that cannot be read."""

import json
import lzma
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from conftest import SAMPLE
from documents import PAGE, docx, pdf, read_documents
from fairseq_commands import run
from tables import for_each
from texts_in_languages import PAPERS
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.cli import main
from pyramidions.cli.summarize import _GROUPS, summarize
from pyramidions.documents.source import InputText, read_inputs
from pyramidions.inference import Summarizer, export_model, load_model
from pyramidions.models import build
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.sublayer import Memory
from pyramidions.scoring import check_summary
from pyramidions.text.tokenizer import PAD

# In float32, as `Summarizer` computes by default
SHORT = ["--beam", 1, "--min-len", 3, "--max-len", 3, "--precision", "float32"]
SAID = "Computes in float32.\n"


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


@for_each("name", ["a.txt", "b.md", "c.html", "d.PDF", "e.jsonl"])
def test_the_text_of_each_kind_of_file_is_found(name: str, folder: Path) -> None:
    first = next(read_documents(folder / name, "body"))
    assert first.text.replace("#", "").split() == ["One", "two", "three."]


def test_a_folder_is_summarized_file_by_file(checkpoint: Path, folder: Path) -> None:
    out = folder / "out.jsonl"
    done = run("pyramidions", "summarize", checkpoint, folder, *SHORT, "--field", "body", "--json", "-o", out)
    assert done.returncode == 0, done.stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [Path(row["name"]).name for row in rows] == ["a.txt", "b.md", "c.html", "d.PDF", "e.jsonl:1", "e.jsonl:3"]
    summarizer = Summarizer.from_pretrained(checkpoint)
    (alone,) = summarizer.summarize(["One two three."], beam=1, min_len=3, max_len=3)
    for row in (rows[0], rows[2], rows[3], rows[4]):
        assert row["summary"] == alone.text and row["scores"] == [pytest.approx(alone.score, abs=1e-4)]
        assert row["document_tokens"] == row["read_tokens"] == alone.document_tokens


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(checkpoint: Path, folder: Path) -> None:
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 and no more")
    (folder / "latin.txt").write_bytes("café".encode("latin-1"))
    (folder / "blank.txt").write_text(" \u200b\n")
    names = ["a.txt", "bad.pdf", "latin.txt", "blank.txt", "missing.txt", "picture.png"]
    done = run("pyramidions", "summarize", checkpoint, *names, *SHORT, folder=folder)
    assert done.returncode == 1 and "Traceback" not in done.stdout
    errors = [line for line in done.stdout.splitlines() if line.startswith("Error: ")]
    assert [error.split()[1].rstrip(":") for error in errors] == names[1:]
    assert "latin.txt: must be UTF-8, but byte 4 is 0xe9 (if it is WINDOWS-1252, `iconv " in done.stdout
    assert "bad.pdf cannot be read as PDF" in done.stdout and "blank.txt holds no text." in done.stdout
    (alone,) = Summarizer.from_pretrained(checkpoint).summarize(["One two three."], beam=1, min_len=3, max_len=3)
    # Of several files given, the name says whose summary it is. A busy machine may show a bar before or after it.
    assert f"a.txt:\n{alone.text}\n\n" in done.stdout


def test_a_line_that_is_no_document_is_named_and_the_rest_goes_on(checkpoint: Path, tmp_path: Path) -> None:
    lines = [b'{"text": "One."}', b'{"text": 2}', b"not JSON", b'{"text": " "}', b'"\xff"', b'{"text": "Six."}']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "b.jsonl").write_bytes(b'{"body": "The wrong field."}\n' * 9)
    out = tmp_path / "out.jsonl"
    done = run(
        "pyramidions", "summarize", checkpoint, *SHORT, "a.jsonl", "b.jsonl", "--json", "-o", out, folder=tmp_path
    )
    assert done.returncode == 1
    assert [json.loads(line)["name"] for line in out.read_text().splitlines()] == ["a.jsonl:1", "a.jsonl:6"]
    # Where the first line is no document, the file is refused in one sentence.
    assert [line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("Error: ")] == [
        *(f"a.jsonl:{n}" for n in (2, 3, 4, 5)),
        "b.jsonl:1",
    ]


def test_summaries_are_written_before_the_last_document_is_read(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "many.jsonl").write_text('{"text": "A word."}\n' * 7)
    written: list[str] = []
    read: list[int] = []

    def watched(*arguments: object) -> Iterator[InputText]:
        for document in read_inputs(*arguments):
            read.append(len(written))
            yield document

    monkeypatch.setattr("pyramidions.cli.engines.read_inputs", watched)
    monkeypatch.setattr("click.echo", lambda line, err=False: None if err else written.append(line))
    monkeypatch.setattr("pyramidions.inference.stream.BATCHES", 1)
    command = ["summarize", checkpoint, tmp_path / "many.jsonl", *SHORT, "--batch-size", 2]
    with pytest.raises(SystemExit, match="0"):
        main([str(argument) for argument in command])
    # Each batch is written before the next is read.
    assert read == [0, 0, 2, 2, 4, 4, 6]


def test_work_that_takes_longer_shows_how_far_it_is(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.txt").write_text("A word.")
    (tmp_path / "two.txt").write_text("Two words.")
    command = [str(argument) for argument in ("summarize", checkpoint, tmp_path, *SHORT, "--batch-size", 1)]
    with pytest.raises(SystemExit, match="0"):
        main(command)
    assert "%" not in capfd.readouterr().err

    def slow(self: Summarizer, *arguments: object, **keywords: object) -> object:
        time.sleep(0.3)
        return quick(self, *arguments, **keywords)

    quick = Summarizer.write
    monkeypatch.setattr(Summarizer, "write", slow)
    monkeypatch.setattr("pyramidions.cli.reading_report.PATIENCE", 0.0)
    monkeypatch.setattr("pyramidions.files.progress.PATIENCE", 0.0)
    with pytest.raises(SystemExit, match="0"):
        main(command)
    shown = capfd.readouterr().err
    assert "summarizing: 100%" in shown and "17.0/17.0" in shown


def test_a_batch_in_which_nobody_counts_shows_a_bar_all_the_same(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.txt").write_text("A word.")
    shown: list[str] = []

    def work(*_: object, **__: object) -> list[object]:
        while not any("summarizing:" in text for text in shown):
            time.sleep(0.01)
            shown.append(capfd.readouterr().err)
        raise UserError("Seen.")

    monkeypatch.setattr("pyramidions.cli.reading_report.PATIENCE", 0.01)
    monkeypatch.setattr("pyramidions.files.progress.PATIENCE", 0.0)
    monkeypatch.setattr(Summarizer, "write", work)
    with pytest.raises(SystemExit, match="1"):
        main(["summarize", str(checkpoint), str(tmp_path / "one.txt")])
    assert "summarizing:   0%" in "".join(shown)


def test_nothing_is_written_where_nothing_can_be_read(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("\u200b")
    out = tmp_path / "out.txt"
    out.write_text("as it was")
    done = run("pyramidions", "summarize", checkpoint, tmp_path / "blank.txt", tmp_path / "none", "-o", out)
    assert done.returncode == 1 and out.read_text() == "as it was"


def test_standard_input_is_one_document(checkpoint: Path) -> None:
    program = Path(sys.executable).parent / "pyramidions"
    command = [program, "summarize", checkpoint, *map(str, SHORT)]
    done = subprocess.run(command, input=b"One two three.", capture_output=True, check=True)
    (alone,) = Summarizer.from_pretrained(checkpoint).summarize(["One two three."], beam=1, min_len=3, max_len=3)
    assert done.stdout.decode() == f"{alone.text}\n"


def test_a_long_document_says_that_it_was_cut_or_is_summarized_in_pieces(
    checkpoint: Path, article: str, tmp_path: Path
) -> None:
    (tmp_path / "long.txt").write_text(article)
    cut = run("pyramidions", "summarize", checkpoint, "long.txt", *SHORT, folder=tmp_path)
    assert "long.txt (only the first 256 of " in cut.stdout
    whole = run("pyramidions", "summarize", checkpoint, "long.txt", *SHORT, "--long", "chunk", folder=tmp_path)
    summarizer = Summarizer.from_pretrained(checkpoint)
    parts = ["".join(piece.tokens) for piece in summarizer.reader.pieces(article, "article")]
    assert f"long.txt (in {len(parts)} pieces, summarized one by one" in whole.stdout
    found = summarizer.summarize(parts, beam=1, min_len=3, max_len=3)
    assert " ".join(summary.text for summary in found) in whole.stdout


def called(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["summarize", *map(str, arguments)], prog_name="pyramidions")


def test_files_that_are_not_read_are_named_once_and_the_others_are_summarized(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One word.")
    (tmp_path / "b.docx").write_bytes(docx("Two words."))
    (tmp_path / "notes.odt").touch()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    done = called(checkpoint, tmp_path, *SHORT)
    assert done.exit_code == 0
    assert done.stderr == f"Skipped 3 files: {tmp_path}/loop.txt, {tmp_path}/notes.odt, {tmp_path}/pipe.txt.\n{SAID}"
    assert [line for line in done.stdout.splitlines() if line.endswith(":")] == [
        f"{tmp_path}/a.txt:",
        f"{tmp_path}/b.docx:",
    ]


def test_of_many_skipped_files_some_are_named(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One word.")
    for number in range(25):
        (tmp_path / f"{number:02}.png").touch()
    done = called(checkpoint, tmp_path, *SHORT)
    assert done.stderr.startswith(f"Skipped 25 files: {tmp_path}/00.png, ")
    assert done.stderr.endswith(f"{tmp_path}/19.png and 5 more.\n{SAID}")


def test_a_loop_of_links_and_a_pipe_are_named_and_the_rest_goes_on(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One word.")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    done = called(checkpoint, *(tmp_path / name for name in ("loop.txt", "pipe.txt", "a.txt")), *SHORT)
    assert done.exit_code == 1 and done.stdout.startswith(f"{tmp_path}/a.txt:\n")
    assert done.stderr.splitlines() == [
        f"Error: {tmp_path}/loop.txt: Too many levels of symbolic links.",
        f"Error: {tmp_path}/pipe.txt must be a regular file, but is a pipe.",
        SAID.strip(),
    ]


@for_each(
    ("options", "sentence"),
    [
        (["--device", "tpu"], "--device must be one that torch finds here (cpu"),
        (["--device", "cuda:99"], "--device must be one that torch finds here (cpu"),
        (["--device", "meta"], "--device must be one that torch finds here (cpu"),
        (["--length-penalty=-1e308"], "--length-penalty must be from -10 to 10, but is -1e+308."),
        (["--length-penalty=nan"], "--length-penalty must be from -10 to 10, but is nan."),
        (["--length-penalty=inf"], "--length-penalty must be from -10 to 10, but is inf."),
        (["--min-len", "9", "--max-len", "5"], "--min-len must be at least 0 and at most --max-len, but is 9"),
        (["--max-len", "48"], "--max-len must be at most 47, what the model writes, but is 48."),
        (["--beam", "799"], "--beam must be at most 798, the vocabulary without padding and end, but is 799."),
        (["--no-repeat-ngram-size", "1", "--beam", "1", "--min-len", "47"], None),
    ],
)
def test_a_wrong_option_is_one_sentence(
    options: list[str], sentence: str | None, checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("One word.")
    done = called(checkpoint, tmp_path / "a.txt", *options)
    if sentence is None:  # it may be kept
        assert done.exit_code == 0
    else:
        assert done.exit_code == 1 and done.stderr.startswith(f"Error: {sentence}"), done.stderr
        assert done.stderr.count("\n") == 1


def test_repeated_ngrams_can_be_forbidden(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One word. " * 20)
    forbidden, allowed = (
        called(checkpoint, tmp_path / "a.txt", "--beam", 1, *flags).stdout
        for flags in (("--no-repeat-ngram-size", 1), ())
    )
    assert forbidden != allowed


def test_a_list_of_summaries_is_by_section_and_wrapped(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "paper.md"
    path.write_text("# Introduction\n\nOne two three.\n\n# Results\n\nTwo three four.\n")

    def summarize(*options: str) -> str:
        words = ["summarize", checkpoint, path, *SHORT, "--long", "sections", *options]
        return CliRunner().invoke(main, [str(word) for word in words]).stdout

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
    words = ["summarize", tmp_path / "export", tmp_path / "paper.txt", *SHORT, "--json"]
    found = json.loads(CliRunner().invoke(main, [str(word) for word in words]).stdout)
    assert 0 < found["copied"] < 1


def test_the_help_groups_options_by_what_they_are_for_and_lists_each_once() -> None:
    output = CliRunner().invoke(main, ["summarize", "--help"]).output
    titles = re.findall(r"^(\S.*):$", output, re.MULTILINE)
    assert titles == [*_GROUPS.values()]
    options = [option.opts[-1] for option in summarize.params if isinstance(option, click.Option)]
    assert re.findall(r"^  (?:-\w, )?(--[\w-]+)", output, re.MULTILINE) == [*options, "--help"]
    assert "a pretrained model of transformers" in output


def test_a_short_text_says_that_its_summary_is_shorter_than_usual(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A word.")
    count = len(Summarizer.from_pretrained(checkpoint).model.tokenizer.encode("A word."))
    most = 2 ** (count.bit_length() - 1)
    assert called(checkpoint, tmp_path / "a.txt").stdout.startswith(
        f"{tmp_path}/a.txt (the text is short: at most {most} tokens):\n"
    )
    # A limit that the user gives is not lowered.
    assert "short" not in called(checkpoint, tmp_path / "a.txt", "--max-len", 9).stdout


def test_documents_of_like_length_share_a_batch_across_the_files_that_are_read_together(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": "A word. " * n}) + "\n" for n in (1, 30, 2, 29)))
    shapes: list[int] = []
    read = BeamSearch.read

    def watched(self: BeamSearch, transformer: object, tokens: Tensor) -> object:
        shapes.append(tokens.ne(PAD).sum(dim=1).tolist())
        return read(self, transformer, tokens)

    monkeypatch.setattr(BeamSearch, "read", watched)
    assert called(checkpoint, tmp_path / "a.jsonl", *SHORT, "--batch-size", 2).exit_code == 0
    (a, b), (c, d) = shapes
    assert a > b > 4 * c > 4 * d


def test_a_check_says_which_sentences_have_support(checkpoint: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("One two three.")
    second.write_text("Four five six.")

    def summarize(*options: str) -> str:
        words = ["summarize", checkpoint, first, second, *SHORT, "--check", *options]
        return CliRunner().invoke(main, [str(word) for word in words]).stdout

    found = json.loads(f"[{','.join(summarize('--json').splitlines())}]")
    checked = [
        check_summary(each["summary"], path.read_text()) for each, path in zip(found, (first, second), strict=True)
    ]
    assert [each["check"] for each in found] == [each.to_dicts() for each in checked]
    assert [f"{said}." for said in re.findall(r"With support: .* document: [\d,]+", summarize())] == [
        each.told for each in checked
    ]


def test_a_document_without_text_for_the_model_is_passed_over_and_the_others_are_checked(
    checkpoint: Path, tmp_path: Path
) -> None:
    # What a tokenizer takes for a space is text to nobody else.
    texts = {"first.txt": "One two three.", "odd.txt": "▁", "third.txt": PAPERS["de"].text}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    words = ["summarize", checkpoint, *(tmp_path / name for name in texts), *SHORT, "--check", "--json"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 1 and f"A document must hold text, but {tmp_path / 'odd.txt'} holds none." in done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(Path(each["name"]).name, each["language"]) for each in found] == [("first.txt", "en"), ("third.txt", "de")]


def test_a_document_whose_scores_are_not_numbers_is_passed_over(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"first.txt": "One two three.", "odd.txt": "Four " * 40, "third.txt": "Five."}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    read = BeamSearch.read

    def overflowing(search: BeamSearch, transformer: Transformer, tokens: Tensor) -> tuple[Memory, ...]:
        (memory,) = read(search, transformer, tokens)
        long = tokens.ne(PAD).sum(dim=1) > 40
        return (memory._replace(x=memory.x.masked_fill(long[:, None, None], math.nan)),)

    monkeypatch.setattr(BeamSearch, "read", overflowing)
    words = ["summarize", checkpoint, *(tmp_path / name for name in texts), *SHORT, "--json"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 1
    assert f"{tmp_path / 'odd.txt'}: The model's scores must be numbers, but are NaN." in done.stderr
    found = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    assert [Path(name).name for name in found] == ["first.txt", "third.txt"]

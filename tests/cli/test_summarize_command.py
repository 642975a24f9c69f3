"""`pyramidions summarize`: files in, summaries out, and a word about each that cannot be read."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SAMPLE
from fairseq_commands import run

from pyramidions.data.text import normalize
from pyramidions.inference import Summarizer
from pyramidions.inference.chunking import pieces
from pyramidions.inference.documents import read_documents

SHORT = ["--beam", 1, "--min-len", 3, "--max-len", 3]
PAGE = "<html><head><title>No</title><style>b{}</style></head><body><nav>menu</nav><p>One <b>two</b></p><p>three.</p>"


def pdf(text: str) -> bytes:
    """Return a page with a line of text."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(body),
    )


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


@pytest.mark.parametrize("name", ["a.txt", "b.md", "c.html", "d.PDF", "e.jsonl"])
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
    assert "latin.txt must be UTF-8, but is not at byte 3." in done.stdout
    assert "bad.pdf cannot be read as PDF" in done.stdout and "blank.txt holds no text." in done.stdout
    (alone,) = Summarizer.from_pretrained(checkpoint).summarize(["One two three."], beam=1, min_len=3, max_len=3)
    assert done.stdout.splitlines()[-1] == alone.text and "100%" not in done.stdout


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
    parts = pieces(article, summarizer.model.tokenizer, 256)
    assert f"long.txt (in {len(parts)} pieces, summarized one by one" in whole.stdout
    found = summarizer.summarize(parts, beam=1, min_len=3, max_len=3)
    assert " ".join(summary.text for summary in found) in whole.stdout


def test_pieces_are_whole_sentences_that_fit(checkpoint: Path, article: str) -> None:
    tokenizer = Summarizer.from_pretrained(checkpoint).model.tokenizer
    text = normalize(article)
    parts = pieces(text, tokenizer, 400)
    assert " ".join(parts) == text and len(parts) > 3
    assert max(len(tokenizer.encode(part)) for part in parts) < 400
    # None could have taken the next one's first sentence.
    assert min(len(tokenizer.encode(part)) for part in parts[:-1]) > 150
    assert pieces("One. Two.", tokenizer, 400) == ["One. Two."] and pieces("", tokenizer, 400) == []

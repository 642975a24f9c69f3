"""`pyramidions summarize --explain`: the summary as ever, and a page beside it."""

from pathlib import Path

import pytest
from fairseq_commands import run

from pyramidions.cli import main
from pyramidions.inference import Summarizer, html_page

SHORT = ["--beam", 1, "--min-len", 3, "--max-len", 3]


def test_the_page_is_that_of_the_api_and_the_summary_as_without(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One two three. Four five.")
    alone = run("pyramidions", "summarize", checkpoint, "a.txt", *SHORT, folder=tmp_path)
    explained = run("pyramidions", "summarize", checkpoint, "a.txt", *SHORT, "--explain", "p.html", folder=tmp_path)
    assert explained.returncode == 0 and explained.stdout == alone.stdout
    explanation = Summarizer.from_pretrained(checkpoint).explain(
        "One two three. Four five.", beam=1, min_len=3, max_len=3
    )
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == html_page(explanation, "a.txt")


def test_several_documents_have_no_page(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "One."}\n{"text": "Two."}\n')
    done = run("pyramidions", "summarize", checkpoint, "a.jsonl", "--explain", "p.html", folder=tmp_path)
    assert (done.returncode, done.stdout) == (
        1,
        "Error: --explain needs a single document, but there are a.jsonl:1 and a.jsonl:2.\n",
    )
    assert not (tmp_path / "p.html").exists()


def test_pieces_have_no_page(checkpoint: Path, tmp_path: Path) -> None:
    done = run("pyramidions", "summarize", checkpoint, "--long", "chunk", "--explain", "p.html", folder=tmp_path)
    assert done.returncode == 2
    assert "--explain shows what is read in one go: it cannot be had with --long chunk." in done.stdout


@pytest.mark.parametrize(
    "targets", [["--explain", "a.txt"], ["--out", "a.txt"], ["--out", "p.html", "--explain", "../here/p.html"]]
)
def test_no_document_and_no_other_output_is_replaced(targets: list[str], checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "a.txt").write_text("One.")
    done = run("pyramidions", "summarize", checkpoint, "a.txt", *SHORT, *targets, folder=folder)
    sentence = f"{targets[-2]} must replace neither a document nor another output, but is {targets[-1]}."
    assert (done.returncode, done.stdout) == (1, f"Error: {sentence}\n")
    assert [path.name for path in folder.iterdir()] == ["a.txt"] and (folder / "a.txt").read_text() == "One."


def test_a_place_that_cannot_be_written_is_told_before_the_work(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("One.")
    monkeypatch.setattr(Summarizer, "explain", lambda *_, **__: pytest.fail("the work has begun"))
    page = tmp_path / "a.txt" / "p.html"
    with pytest.raises(SystemExit) as end:
        main(["summarize", str(checkpoint), str(tmp_path / "a.txt"), "--explain", str(page)])
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith(f"Error: {page.parent}")


def test_a_page_that_is_called_something_else_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    done = run("pyramidions", "summarize", checkpoint, "a.txt", "--explain", "p.pdf", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "Error: --explain must end in .html, but is p.pdf.\n")

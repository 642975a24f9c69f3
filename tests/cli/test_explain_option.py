"""`pyramidions summarize --explain`: the summary as ever, and a page beside it."""

import json
from pathlib import Path

import pytest
from explanations import page_data, texts_of
from fairseq_commands import run

from pyramidions.cli import main
from pyramidions.inference import ExplanationPage, Summarizer, html_page

# In float32, as `Summarizer` computes by default
SHORT = ["--beam", 1, "--min-len", 3, "--max-len", 3, "--precision", "float32"]


def test_the_page_is_that_of_the_api_and_the_summary_as_without(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("One two three. Four five.")
    printed = []
    for more in ([], ["--explain", "p.html"]):
        with pytest.raises(SystemExit) as end:
            main([*map(str, ["summarize", checkpoint, "a.txt", *SHORT]), *more])
        assert end.value.code == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    name = "/".join(checkpoint.parts[-2:])
    explanation = Summarizer.from_pretrained(checkpoint).explain(
        "One two three. Four five.", beam=1, min_len=3, max_len=3
    )
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == html_page(explanation, "a.txt", name)


def without_support(line: str) -> str:
    about = json.loads(line)
    del about["support"]
    return json.dumps(about, ensure_ascii=False)


def test_several_documents_and_their_pieces_are_on_one_page(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = " ".join(f"Sentence {i} is about cells." for i in range(40))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": long}) + '\n{"text": "Two."}\n')
    page = tmp_path / "p.html"
    command = ["summarize", checkpoint, tmp_path / "a.jsonl", *SHORT, "--long", "chunk", "--json"]
    with pytest.raises(SystemExit) as end:
        main([*map(str, command), "--explain", str(page)])
    explained = capsys.readouterr().out
    assert end.value.code == 0
    with pytest.raises(SystemExit):
        main([*map(str, command), "--batch-size", "1"])
    # What supports each sentence is all that is added.
    assert [without_support(line) for line in explained.splitlines()] == capsys.readouterr().out.splitlines()
    first, second = page_data(page.read_text(encoding="utf-8"))["documents"]
    assert (first["name"][-9:], second["name"][-9:]) == ("a.jsonl:1", "a.jsonl:2")
    assert len(texts_of(first)) == json.loads(explained.splitlines()[0])["pieces"] > 1
    # Nothing of a long document is left out.
    assert " ".join(texts_of(first)).split() == long.split()


def test_documents_that_find_no_room_on_the_page_are_summarized_and_told(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ExplanationPage.__init__.__wrapped__, "__defaults__", ("", 1))
    (tmp_path / "a.txt").write_text("One.")
    page = tmp_path / "p.html"
    with pytest.raises(SystemExit) as end:
        main([*map(str, ["summarize", checkpoint, tmp_path / "a.txt", *SHORT]), "--explain", str(page)])
    done = capsys.readouterr()
    assert end.value.code == 1 and done.out.strip()
    sentence = (
        f"1 document is missing from {page}, or incomplete there: a page holds at most 24 MiB, and 262,144 tokens of "
        "one document."
    )
    assert done.err == f"Computes in float32.\nError: {sentence}\n"
    assert page_data(page.read_text(encoding="utf-8"))["left_out"] == 1


@pytest.mark.parametrize("targets", [["--explain", "a.txt"], ["--out", "a.txt"], ["--out", "p", "--explain", "p.html"]])
def test_no_document_and_no_other_output_is_replaced(targets: list[str], checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "a.txt").write_text("One.")
    (folder / "p.html").symlink_to("p")
    done = run("pyramidions", "summarize", checkpoint, "a.txt", *SHORT, *targets, folder=folder)
    taken = "one of the inputs" if targets[-1] == "a.txt" else "another output"
    sentence = f"{targets[-2]} must not replace {taken}, but is {targets[-1]}."
    assert (done.returncode, done.stdout) == (1, f"Error: {sentence}\n")
    assert {path.name for path in folder.iterdir()} == {"a.txt", "p.html"} and (folder / "a.txt").read_text() == "One."


def test_a_place_that_cannot_be_written_is_told_before_the_work(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("One.")
    monkeypatch.setattr(Summarizer, "explain_tokenized", lambda *_, **__: pytest.fail("the work has begun"))
    page = tmp_path / "a.txt" / "p.html"
    with pytest.raises(SystemExit) as end:
        main(["summarize", str(checkpoint), str(tmp_path / "a.txt"), "--explain", str(page)])
    assert end.value.code == 1
    assert str(page.parent) in capsys.readouterr().err.splitlines()[-1]


def test_a_page_that_is_called_something_else_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    done = run("pyramidions", "summarize", checkpoint, "a.txt", "--explain", "p.pdf", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "Error: --explain must end in .html, but is p.pdf.\n")

"""`pyramidions extract`: documents in, sentences out."""

import json
import os
import tracemalloc
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from documents import PAGE, docx, pdf
from full_disk import files_of_at_most
from tables import for_each
from texts_in_languages import PAPERS

from pyramidions import Extractor
from pyramidions.base.errors import UserError
from pyramidions.cli import main, reading_report
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.documents.source import Fields, read_files
from pyramidions.extract import TfIdf
from pyramidions.inference import LearnedRanker, SavedExtractor, extraction_stream
from pyramidions.inference.precision import Precision
from pyramidions.text.outline import Outline

NAMES_OF_METHODS = "hiporank, lead, textrank, oracle, biomedical, meetings"

PAPER = "# Start\n\nOne vector is enough. Two vectors are better.\n\n# End\n\nThree vectors are one too many.\n"


def extract(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["extract", *map(str, arguments)], input=text)


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("files", [[], ["-"]])
def test_standard_input_is_one_document(files: list[str]) -> None:
    done = extract(*files, "--sentences", 1, "--method", "lead", text=PAPER)
    assert (done.exit_code, done.stdout) == (0, "One vector is enough.\n")


def test_an_output_in_the_folder_of_the_documents_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(PAPER)
    out = tmp_path / "out.txt"
    for _ in range(2):
        done = extract(tmp_path, "--method", "lead", "--sentences", 1, "-o", out)
        assert (done.exit_code, out.read_text()) == (0, "One vector is enough.\n"), done.output
    assert "must not replace one of the inputs" in extract(out, "--method", "lead", "-o", out).stderr


def test_each_query_has_an_extract_of_its_own(tmp_path: Path) -> None:
    text = "The first model reads all papers. A second model writes short abstracts.\n"
    asked = ("--method", "biomedical", "--sentences", 1)
    done = extract(*asked, "--query", "Who writes?", "--query", "What is read?", text=text)
    assert done.stdout == (
        "standard input:\nQuery: Who writes?\nA second model writes short abstracts.\n\n"
        "standard input:\nQuery: What is read?\nThe first model reads all papers.\n\n"
    )
    said = "The document held no word of the query: the summary is no answer to it.\n"
    assert said not in done.stderr and said in extract(*asked, "--query", "Zebras?", text=text).stderr
    records = [{"id": "a", "article": text, "query": "Who writes?"}, {"id": "b", "article": text, "query": "?"}]
    (tmp_path / "papers.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    done = extract(tmp_path / "papers.jsonl", *asked, "--query-field", "query", "--json")
    (row,) = map(json.loads, done.stdout.splitlines())
    assert (row["id"], row["query"], row["summary"]) == ("a", "Who writes?", "A second model writes short abstracts.")
    assert (
        done.exit_code == 1
        and "papers.jsonl:2: its query must hold a word that is no stop word, but is '?'." in done.stderr
    )


def test_only_a_sentence_that_is_alone_is_longer_than_asked() -> None:
    text = "蜜蜂飞得很快。它们在下雨时回家。它们睡觉。"
    said = "no sentence within the budget"
    assert said not in extract("--method", "lead", "--words", 6, text=text).stderr
    assert said in extract("--method", "lead", "--words", 1, text=text).stderr


def test_an_object_has_the_summary_and_each_sentence_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "papers.jsonl").write_text(json.dumps({"id": "a7", "article": PAPER}) + "\n")
    out = tmp_path / "out.jsonl"
    done = extract(tmp_path / "papers.jsonl", "--field", "article", "--sentences", 2, "-o", out)
    assert done.exit_code == 0, done.output
    (row,) = rows(out)
    expected = Extractor().extract(PAPER, sentences=2)
    assert row == {
        "id": "a7",
        "name": f"{tmp_path}/papers.jsonl:1",
        "summary": expected.text,
        "language": "en",
        "sentences": [
            {"text": s.text, "position": s.position, "section": s.section, "score": s.score} for s in expected.sentences
        ],
    }
    assert {sentence["section"] for sentence in row["sentences"]} <= {"Start", "End"}


def test_every_kind_of_file_and_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One two three.")
    (tmp_path / "b.md").write_text(PAPER)
    (tmp_path / "c.html").write_text(PAGE)
    (tmp_path / "d.pdf").write_bytes(pdf("One two three."))
    (tmp_path / "e.docx").write_bytes(docx("One two three."))
    done = extract(tmp_path, "--json", "--method", "lead")
    assert done.exit_code == 0, done.output
    found = {Path(row["name"]).name: row["summary"] for row in map(json.loads, done.stdout.splitlines())}
    assert set(found) == {"a.txt", "b.md", "c.html", "d.pdf", "e.docx"}
    assert found["a.txt"] == found["d.pdf"] == found["e.docx"] == "One two three."
    assert "Start" not in found["b.md"]


def test_scores_take_the_output_as_it_is(tmp_path: Path) -> None:
    papers = [{"id": str(n), "text": PAPER, "summary": "Two vectors are better."} for n in range(3)]
    (tmp_path / "papers.jsonl").write_text("".join(json.dumps(paper) + "\n" for paper in papers))
    out = tmp_path / "out.jsonl"
    extract(tmp_path / "papers.jsonl", "--method", "oracle", "--reference-field", "summary", "-o", out)
    done = CliRunner().invoke(main, ["score", str(out), "--references", str(tmp_path / "papers.jsonl")])
    assert done.exit_code == 0, done.output
    assert "100.00 [100.00, 100.00]" in done.stdout


def test_options_of_the_method_are_json() -> None:
    done = extract("--method-args", '{"mu": 1', text=PAPER)
    assert done.exit_code == 1
    assert "Error: --method-args must be a JSON object" in done.stderr


def test_a_document_without_a_sentence_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Only\n\n# Headings\n")
    (tmp_path / "b.md").write_text(PAPER)
    done = extract(tmp_path, "--sentences", 1, "--method", "lead")
    assert done.exit_code == 1
    assert f"Error: {tmp_path}/a.md: A document must hold a sentence, but holds headings only." in done.stderr
    assert "One vector is enough." in done.stdout


def test_a_document_without_headings_is_said_to_be_one_section() -> None:
    done = extract(text="One two. Three four.")
    assert "The document had no headings and counted as one section." in done.stderr
    assert "no headings" not in extract(text=PAPER).stderr


def test_document_frequencies_may_come_from_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"text": "Vectors vectors."}\n{"text": "Better."}\n')
    done = extract("--idf", tmp_path / "corpus.jsonl", "--json", text=PAPER)
    assert done.exit_code == 0, done.output
    fitted = Extractor("hiporank", vectors=TfIdf(["Vectors vectors.", "Better."])).extract(PAPER)
    plain = Extractor("hiporank").extract(PAPER)
    scores = [sentence["score"] for sentence in json.loads(done.stdout)["sentences"]]
    assert scores == [sentence.score for sentence in fitted.sentences]
    assert scores != [sentence.score for sentence in plain.sentences]


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(" ")
    done = extract("--idf", tmp_path / "corpus.txt", text=PAPER)
    assert done.exit_code == 1
    assert f"--idf must hold documents with text, but {tmp_path}/corpus.txt holds none." in done.stderr


@for_each(
    ("arguments", "sentence"),
    [
        (
            ["--method", "best"],
            f"--method must be one of {NAMES_OF_METHODS}, or a trained extractor, but is 'best'.",
        ),
        (["--method", "oracle"], "--method oracle and --reference-field must be given together."),
        (["--reference-field", "x"], "--method oracle and --reference-field must be given together."),
        (
            ["--method", "lead", "--idf", "corpus.txt"],
            "The method 'lead' compares no sentences: vectors have no effect.",
        ),
        (["-o", "missing/out.txt"], "--out must be a file in a folder that exists, but is missing/out.txt."),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("Some text.")
    done = extract(*arguments, text=PAPER)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, f"Error: {sentence}")


def test_a_page_shows_what_was_extracted(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = extract("--sentences", 1, "--method", "lead", "--explain", page, text=PAPER)
    assert (done.exit_code, done.stdout) == (0, "One vector is enough.\n")
    assert "Two vectors are better." in page.read_text()
    assert '"method":"lead"' in page.read_text()


def test_a_page_must_be_html(tmp_path: Path) -> None:
    done = extract("--explain", tmp_path / "page.pdf", text=PAPER)
    assert f"Error: --explain must end in .html, but is {tmp_path}/page.pdf." in done.stderr


def test_without_any_document_an_older_page_stays(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "bad.pdf").write_bytes(b"")
    assert extract(tmp_path / "bad.pdf", "--explain", tmp_path / "page.html").exit_code == 1
    assert (tmp_path / "page.html").read_text() == "old"


def test_on_a_full_disk_a_command_leaves_both_outputs_or_none(tmp_path: Path) -> None:
    out, page = tmp_path / "extracts.json", tmp_path / "page.html"
    command = ("--method", "lead", "-o", out, "--explain", page)
    # The page is longer than that, and the extracts are not.
    with files_of_at_most(20_000):
        done = extract(*command, text=PAPER)
    assert done.exit_code == 1 and done.stderr.endswith(": File too large.\n")
    assert not list(tmp_path.iterdir())
    assert extract(*command, text=PAPER).exit_code == 0 and 0 < out.stat().st_size < 20_000 < page.stat().st_size


def test_a_document_without_a_reference_is_reported_and_the_oracle_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Some text.")
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": PAPER, "summary": "Two vectors are better."}) + "\n")
    done = extract(tmp_path, "--method", "oracle", "--reference-field", "summary")
    assert done.exit_code == 1
    assert (
        f"{tmp_path}/a.txt: The method 'oracle' needs a reference summary, which only a .jsonl file has." in done.stderr
    )
    assert "Two vectors are better." in done.stdout


def test_a_budget_that_no_sentence_fits_is_said() -> None:
    assert "The document had no sentence within the budget" in extract("--words", 1, text=PAPER).stderr


def test_documents_are_not_kept_while_a_model_rates_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alive: list[int] = []
    living: list[weakref.ref[Outline]] = []

    class OneByOne(LearnedRanker):
        def __init__(self) -> None:
            self.model = SavedExtractor(None, None, None, 64)
            self.precision = Precision("float32", "Computes in float32.")

        def rank_all(self, outlines: Iterable[Outline]) -> Iterator[np.ndarray]:
            for found in outlines:
                living.append(weakref.ref(found))
                alive.append(sum(each() is not None for each in living))
                yield np.zeros(len(found.sentences))

    monkeypatch.setattr(LearnedRanker, "from_pretrained", lambda path, device, precision: OneByOne())
    (tmp_path / "papers.jsonl").write_text((json.dumps({"text": PAPER}) + "\n") * 50)
    (tmp_path / "model").mkdir()
    extract(tmp_path / "papers.jsonl", "--method", tmp_path / "model")
    assert len(alive) == 50
    assert max(alive) < 5


def test_without_an_extract_older_outputs_stay(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "old.txt").write_text("precious")
    (tmp_path / "old.html").write_text("precious")
    done = extract(tmp_path / "empty.txt", "-o", tmp_path / "old.txt", "--explain", tmp_path / "old.html")
    assert done.exit_code == 1
    assert {path.name: path.read_text() for path in tmp_path.glob("old.*")} == {
        "old.txt": "precious",
        "old.html": "precious",
    }


APART = "# One\n\nBees fly very fast. Rain fell that day. Bees fly very far.\n\n# Two\n\nBees fly very high.\n"


def test_a_list_is_by_section_and_shows_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--words", 12, "--method", "textrank")
    listed = "One\n  Bees fly very fast. [...] Bees fly very far.\n\nTwo\n  Bees fly very high.\n"
    plain = "Bees fly very fast. Bees fly very far. Bees fly very high.\n"
    assert extract(*words, "--format", "list", text=APART).stdout == listed
    assert extract(*words, text=APART).stdout == extract(*words, "--format", "text", text=APART).stdout == plain
    monkeypatch.setattr("pyramidions.cli.worker._is_terminal", lambda: True)
    assert extract(*words, text=APART).stdout == listed
    assert extract(*words, "--format", "json", text=APART).stdout == extract(*words, "--json", text=APART).stdout


def test_a_file_that_ends_in_json_holds_one_value(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.md").write_text(APART)
    for _ in range(2):
        done = extract(tmp_path / "a.md", tmp_path / "b.md", "-o", tmp_path / "out.json")
        assert done.exit_code == 0, done.stderr
    lines = extract(tmp_path / "a.md", tmp_path / "b.md", "--json").stdout.splitlines()
    assert json.loads((tmp_path / "out.json").read_text()) == [json.loads(line) for line in lines]
    done = extract(tmp_path / "a.md", "--format", "text", "-o", tmp_path / "out.json")
    assert "--format must be json with --json, or where --out ends in .json or .jsonl, but is text." in done.stderr


def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For root all folders can be written.
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr("pyramidions.documents.source.list_inputs", None)
    for option, name in (("--out", "out.txt"), ("--explain", "page.html")):
        done = extract(option, tmp_path / name, text=APART)
        assert done.stderr == f"Error: {option} must be a file that can be written, but {tmp_path} is read-only.\n"


@pytest.mark.parametrize(
    ("tail", "most"),
    [
        ("were larger than expected, considering measurements that followed earlier experiments.", 4),
        # Each sentence takes some bytes beside its own.
        ("were large.", 5),
    ],
)
def test_each_byte_of_a_text_takes_at_most_four_of_memory(tail: str, most: int, tmp_path: Path) -> None:
    # Held as one, the text would take four bytes a letter by itself.
    lines = [f"The {n % 97} values{n % 89} of \U0001f600 gene{n % 83} {tail}\n" for n in range(40_000)]
    peaks = []
    for count in (10, 20_000, 40_000):
        (tmp_path / "long.txt").write_text("".join(lines[:count]))
        tracemalloc.start()
        assert extract(tmp_path / "long.txt", "--sentences", 1, "-o", tmp_path / "out.txt").exit_code == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # What blocks of a fixed size take is the same for both.
    ratio = (peaks[2] - peaks[1]) / len("".join(lines[20_000:]).encode())
    assert ratio < most, ratio
    assert (tmp_path / "out.txt").read_text() == f"{Extractor().extract(''.join(lines), sentences=1).text}\n"


@pytest.mark.parametrize("separator", [" ", "\n"])
@pytest.mark.parametrize("is_record", [True, False])
def test_each_byte_of_a_record_and_of_standard_input_takes_at_most_four(
    is_record: bool, separator: str, tmp_path: Path
) -> None:
    peaks, sizes = [], []
    for count in (10, 8_000, 16_000):
        text = separator.join(f"The {n % 97} values of gène {n % 83} were larger than expected." for n in range(count))
        content = json.dumps({"text": text}, ensure_ascii=False) if is_record else text
        (tmp_path / "a.jsonl").write_text(content)
        sizes.append(len(content.encode()))
        tracemalloc.start()
        given = {"text": None} if is_record else {"text": text}
        files = [tmp_path / "a.jsonl"] if is_record else []
        assert extract(*files, "--method", "lead", "-o", tmp_path / "out.txt", **given).exit_code == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    ratio = (peaks[2] - peaks[1]) / (sizes[2] - sizes[1])
    assert ratio < 4, ratio


def test_progress_is_counted_within_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction_stream, "_STEP", 20)
    (tmp_path / "a.txt").write_text(PAPER * 3)
    (tmp_path / "b.txt").write_text("# Only\n\n# Headings\n")
    steps: list[float] = []
    extractor, told = Extractor(), {"on_progress": steps.append, "refuse": print}
    documents = read_files([tmp_path / "a.txt", tmp_path / "b.txt"], Fields(by_line=True), print)
    found = list(extraction_stream.extract_documents(documents, extractor, extractor.rules(), **told))
    assert len(found) == 1 and len(steps) > 20 and max(steps) < len(PAPER)
    # A document is read and extracted from; one that is refused is read.
    assert sum(steps) == 2 * len(PAPER * 3) + len("# Only\n\n# Headings\n")


def test_a_bar_in_a_file_is_not_drawn_anew_at_each_note_and_ends_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reading_report, "PATIENCE", 0.0)
    monkeypatch.setattr("pyramidions.files.progress.PATIENCE", 0.0)
    (tmp_path / "a.txt").write_text("One two three.")
    with closing(ReadingReport([tmp_path / "a.txt"], "extracting")) as report:
        while report._bar is None:
            pass
        for _ in range(5):
            report.fail(UserError("It is not read."))
        report.finish()
    shown = capfd.readouterr().err
    assert "14.0/14.0" in shown and shown.count("Error: It is not read.") == 5 and shown.count("extracting: ") == 2


def test_the_language_of_other_than_english_documents_is_told(tmp_path: Path) -> None:
    for code in ("de", "zh"):
        (tmp_path / f"{code}.txt").write_text(PAPERS[code].text)
    (tmp_path / "en.txt").write_text(PAPER)
    (tmp_path / "zh2.txt").write_text(PAPERS["zh"].text)
    given = [tmp_path / f"{name}.txt" for name in ("de", "en", "zh", "zh2")]
    done = extract(*given, "--sentences", 1, "--json")
    assert [json.loads(line)["language"] for line in done.stdout.splitlines()] == ["de", "en", "zh", "zh"]
    assert "1 of 4 documents was read as de; --language sets another language." in done.stderr
    assert "2 of 4 documents were read as zh; --language sets another language." in done.stderr
    assert "was read as en" not in done.stderr
    assert "was read as" not in extract(tmp_path / "de.txt", "--language", "de").stderr


def test_several_files_are_extracted_as_one_document_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "bees.md").write_text(
        "# Bees\n\n## Methods\n\nWe counted all of the bees.\n\n## Results\n\nThe bees were many.\n"
    )
    (tmp_path / "ants.txt").write_text("We counted all of the ants. The ants were few.\n")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\xff")
    files = [tmp_path / name for name in ("bees.md", "ants.txt")]
    done = extract(*files, "--as-one", "--method", "lead", "--sentences", 4, "--json")
    (row,) = map(json.loads, done.stdout.splitlines())
    assert row["id"] == row["name"] == f"{files[0]}, {files[1]}"
    assert [(each["text"], each["section"]) for each in row["sentences"]] == [
        ("We counted all of the bees.", str(files[0])),
        ("The bees were many.", str(files[0])),
        ("We counted all of the ants.", str(files[1])),
        ("The ants were few.", str(files[1])),
    ]
    done = extract(*files, tmp_path / "bad.txt", "--as-one", "--sentences", 1, "--explain", tmp_path / "page.html")
    assert done.exit_code == 1 and "bad.txt begins with the byte-order mark of UTF-16" in done.stderr
    assert "Methods" in (tmp_path / "page.html").read_text()
    for name in ("mon.txt", "tue.txt"):
        (tmp_path / name).write_text("Ann: The bees of today were counted by us. \nBob: Yes.\n" * 3)
    meetings = [tmp_path / "mon.txt", tmp_path / "tue.txt"]
    done = extract(*meetings, "--as-one", "--sentences", 1, "--json")
    assert json.loads(done.stdout)["sentences"][0]["section"] == str(meetings[0])
    out = tmp_path / "out.jsonl"
    done = extract(*files, "--as-one", "--sentences", 1, "--resume", "-o", out)
    assert done.stderr == "Error: --as-one makes one document of all: --resume excludes it.\n"

"""`pyramidions extract`: documents in, sentences out; tests/bad_input has what it refuses."""

import json
import os
import re
import tracemalloc
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import Result
from full_disk import files_of_at_most
from invoking import run
from texts_in_languages import PAPERS

from pyramidions import Extractor
from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part
from pyramidions.cli import extracting, reading_report
from pyramidions.cli.extract import Selecting
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.cli.worker import Layout
from pyramidions.documents.source import Fields, read_files
from pyramidions.extract import TfIdf
from pyramidions.inference import LearnedRanker, SavedExtractor
from pyramidions.inference.precision import Precision
from pyramidions.text.outline import Outline

PAPER = "# Start\n\nOne vector is enough. Two vectors are better.\n\n# End\n\nThree vectors are one too many.\n"
LEAD = ("--method", "lead", "--sentences", 1)
APART = "# One\n\nBees fly very fast. Rain fell that day. Bees fly very far.\n\n# Two\n\nBees fly very high.\n"


def extract(*arguments: object, text: str | None = None) -> Result:
    return run("extract", *arguments, text=text)


def lines(*records: dict[str, object]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize("files", [[], ["-"]])
def test_standard_input_is_one_document(files: list[str]) -> None:
    done = extract(*files, *LEAD, text=PAPER)
    assert (done.exit_code, done.stdout) == (0, "One vector is enough.\n")


def test_an_output_in_the_folder_of_the_documents_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(PAPER)
    out = tmp_path / "out.txt"
    for _ in range(2):
        done = extract(tmp_path, *LEAD, "-o", out)
        assert (done.exit_code, out.read_text()) == (0, "One vector is enough.\n"), done.output


def test_each_query_has_an_extract_of_its_own(tmp_path: Path) -> None:
    text = "The first model reads all papers. A second model writes short abstracts.\n"
    asked = ("--method", "biomedical", "--sentences", 1)
    done = extract(*asked, "--query", "Who writes?", "--query", "What is read?", text=text)
    assert done.stdout.split("\n\n") == [
        "standard input:\nQuery: Who writes?\nA second model writes short abstracts.",
        "standard input:\nQuery: What is read?\nThe first model reads all papers.",
        "",
    ]
    said = "The document held no word of the query: the summary is no answer to it.\n"
    assert said not in done.stderr and said in extract(*asked, "--query", "Zebras?", text=text).stderr
    (tmp_path / "a.jsonl").write_text(lines({"id": "a", "article": text, "query": "Who writes?"}))
    done = extract(tmp_path / "a.jsonl", *asked, "--query-field", "query", "--json")
    row = json.loads(done.stdout)
    assert (row["id"], row["query"], row["summary"]) == ("a", "Who writes?", "A second model writes short abstracts.")


def test_only_a_sentence_that_is_alone_is_longer_than_asked() -> None:
    text = "蜜蜂飞得很快。它们在下雨时回家。它们睡觉。"
    said = "no sentence within the budget"
    assert said not in extract("--method", "lead", "--words", 6, text=text).stderr
    assert said in extract("--method", "lead", "--words", 1, text=text).stderr


def test_options_of_a_method_stand_behind_it() -> None:
    text = "# A\n\nA bee flies. A cat sleeps. A bee flies far.\n\n# B\n\nA dog barks. The bee flies home."
    done = extract("--method", "hiporank(mu=0, lambda_1=-0.5)", "--json", text=text)
    said = [sentence["score"] for sentence in json.loads(done.stdout)["sentences"]]
    expected = Extractor("hiporank", {"mu": 0, "lambda_1": -0.5}).extract(text).sentences
    assert said == [sentence.score for sentence in expected]
    assert said != [sentence.score for sentence in Extractor("hiporank").extract(text).sentences]


def test_an_object_has_the_summary_and_each_sentence_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "papers.jsonl").write_text(lines({"id": "a7", "article": PAPER}))
    out = tmp_path / "out.jsonl"
    done = extract(tmp_path / "papers.jsonl", "--field", "article", "--sentences", 2, "-o", out)
    assert done.exit_code == 0, done.output
    expected = Extractor().extract(PAPER, sentences=2)
    assert json.loads(out.read_text()) == {
        "id": "a7",
        "name": f"{tmp_path}/papers.jsonl:1",
        "selected_by": "hiporank",
        "summary": expected.text,
        "language": "en",
        "sentences": [
            {"text": s.text, "position": s.position, "section": s.section, "score": s.score} for s in expected.sentences
        ],
    }
    assert {sentence.section for sentence in expected.sentences} <= {"Start", "End"}


def test_scores_take_the_output_as_it_is_and_a_document_without_a_reference_is_reported(tmp_path: Path) -> None:
    references, out = tmp_path / "b.jsonl", tmp_path / "out.jsonl"
    references.write_text(
        lines(*({"id": str(n), "text": PAPER, "summary": "Two vectors are better."} for n in range(3)))
    )
    oracle = ("--method", "oracle", "--reference-field", "summary")
    assert extract(references, *oracle, "-o", out).exit_code == 0
    done = run("score", out, "--references", references)
    assert done.stdout.count("100.00 [100.00, 100.00]") == 4, done.output
    (tmp_path / "a.txt").write_text("Some text.")
    done = extract(tmp_path / "a.txt", references, *oracle)
    assert done.exit_code == 1 and str(tmp_path / "a.txt") in done.stderr
    assert done.stdout.count("Two vectors are better.") == 3


def test_a_document_without_headings_is_said_to_be_one_section() -> None:
    assert "headings" in extract(text="One two. Three four.").stderr
    assert "headings" not in extract(text=PAPER).stderr


def test_document_frequencies_may_come_from_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"text": "Vectors vectors."}\n{"text": "Better."}\n')
    done = extract("--idf", tmp_path / "corpus.jsonl", "--json", text=PAPER)
    assert done.exit_code == 0, done.output
    fitted = Extractor("hiporank", vectors=TfIdf(["Vectors vectors.", "Better."])).extract(PAPER)
    plain = Extractor("hiporank").extract(PAPER)
    scores = [sentence["score"] for sentence in json.loads(done.stdout)["sentences"]]
    assert scores == [sentence.score for sentence in fitted.sentences]
    assert scores != [sentence.score for sentence in plain.sentences]


def test_without_an_extract_older_outputs_stay(tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"")
    old = [tmp_path / "old.txt", tmp_path / "old.html"]
    for path in old:
        path.write_text("precious")
    assert extract(tmp_path / "bad.pdf", "-o", old[0], "--explain", old[1]).exit_code == 1
    assert [path.read_text() for path in old] == ["precious"] * 2


def test_on_a_full_disk_a_command_leaves_both_outputs_or_none(tmp_path: Path) -> None:
    out, page = tmp_path / "extracts.json", tmp_path / "page.html"
    command = ("--method", "lead", "-o", out, "--explain", page)
    # The page is longer than that, and the extracts are not.
    with files_of_at_most(20_000):
        done = extract(*command, text=PAPER)
    assert done.exit_code == 1 and done.stderr.endswith(": File too large.\n")
    assert not list(tmp_path.iterdir())
    assert extract(*command, text=PAPER).exit_code == 0 and 0 < out.stat().st_size < 20_000 < page.stat().st_size


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
    (tmp_path / "papers.jsonl").write_text(lines({"text": PAPER}) * 50)
    (tmp_path / "model").mkdir()
    extract(tmp_path / "papers.jsonl", "--method", tmp_path / "model")
    assert len(alive) == 50
    assert max(alive) < 5


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
    files = [tmp_path / "a.md", tmp_path / "b.md"]
    for path in files:
        path.write_text(APART)
    for _ in range(2):
        done = extract(*files, "-o", tmp_path / "out.json")
        assert done.exit_code == 0, done.stderr
    printed = extract(*files, "--json").stdout.splitlines()
    assert json.loads((tmp_path / "out.json").read_text()) == [json.loads(line) for line in printed]


def test_an_output_that_cannot_be_written_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # For root all folders can be written.
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr("pyramidions.documents.source.list_inputs", None)
    for option, name in (("--out", "out.txt"), ("--explain", "page.html")):
        done = extract(option, tmp_path / name, text=APART)
        assert option in done.stderr and str(tmp_path) in done.stderr


@pytest.mark.parametrize(
    ("kind", "method", "count"),
    [
        ("file", "lead", 4_000),
        ("record", "lead", 4_000),
        pytest.param("standard input", "lead", 16_000, marks=pytest.mark.nightly),
        pytest.param("file", "hiporank", 40_000, marks=pytest.mark.nightly),
    ],
)
def test_each_byte_of_a_text_takes_at_most_four_of_memory(kind: str, method: str, count: int, tmp_path: Path) -> None:
    tail = "were larger than expected, considering measurements that followed earlier experiments."
    # Held as one, a text with such a letter would take four bytes a letter by itself.
    letter = "\U0001f600" if kind == "file" else "è"
    sentences = [f"The {n % 97} values{n % 89} of {letter} gene{n % 83} {tail}\n" for n in range(count)]
    peaks, sizes = [], []
    for number in (10, count // 2, count):
        text = "".join(sentences[:number])
        content = json.dumps({"text": text}, ensure_ascii=False) if kind == "record" else text
        path = tmp_path / {"record": "a.jsonl"}.get(kind, "a.txt")
        path.write_text(content)
        sizes.append(len(content.encode()))
        files = [] if kind == "standard input" else [path]
        given = text if kind == "standard input" else None
        out = tmp_path / "out.txt"
        tracemalloc.start()
        assert extract(*files, "--method", method, "--sentences", 1, "-o", out, text=given).exit_code == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # What blocks of a fixed size take is the same for both.
    ratio = (peaks[2] - peaks[1]) / (sizes[2] - sizes[1])
    assert ratio < 4, ratio
    # Of a record, the name stands above.
    assert out.read_text().rstrip().splitlines()[-1] == Extractor(method).extract("".join(sentences), sentences=1).text


def test_progress_is_counted_within_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extracting, "_STEP", 20)
    (tmp_path / "a.txt").write_text(PAPER * 3)
    (tmp_path / "b.txt").write_text("# Only\n\n# Headings\n")
    steps: list[float] = []
    worker = extracting.Extracting(Layout("text"), Selecting(Part("hiporank"), *[None] * 9), None, (), False, False)
    documents = read_files([tmp_path / "a.txt", tmp_path / "b.txt"], Fields(by_line=True), print)
    found = list(worker.results(documents, SimpleNamespace(add=steps.append, fail=print)))
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
    assert re.findall(r"(\d) of 4 documents \w+ read as (\w+)", done.stderr) == [("1", "de"), ("2", "zh")]
    assert "--language" not in extract(tmp_path / "de.txt", "--language", "de").stderr


def test_several_files_are_extracted_as_one_document_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "bees.md").write_text(
        "# Bees\n\n## Methods\n\nWe counted all of the bees.\n\n## Results\n\nThe bees were many.\n"
    )
    (tmp_path / "ants.txt").write_text("We counted all of the ants. The ants were few.\n")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\xff")
    files = [tmp_path / name for name in ("bees.md", "ants.txt")]
    row = json.loads(extract(*files, "--as-one", "--method", "lead", "--sentences", 4, "--json").stdout)
    assert row["id"] == row["name"] == f"{files[0]}, {files[1]}"
    assert [(each["text"], each["section"]) for each in row["sentences"]] == [
        ("We counted all of the bees.", str(files[0])),
        ("The bees were many.", str(files[0])),
        ("We counted all of the ants.", str(files[1])),
        ("The ants were few.", str(files[1])),
    ]
    done = extract(*files, tmp_path / "bad.txt", "--as-one", "--sentences", 1, "--explain", tmp_path / "page.html")
    assert done.exit_code == 1 and str(tmp_path / "bad.txt") in done.stderr
    assert "Methods" in (tmp_path / "page.html").read_text()

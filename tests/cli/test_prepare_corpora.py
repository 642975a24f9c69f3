"""`pyramidions prepare NAME`: what is told before anything is read, and what the data folder remembers."""

import json
from pathlib import Path

import datasets
import pytest
from click.testing import CliRunner, Result
from corpus_shapes import SHAPES, lines, write

from pyramidions.cli import main
from pyramidions.data.corpora import KNOWN


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def prepare(*words: str) -> Result:
    return CliRunner().invoke(main, ["prepare", *words, "--vocab-size", "36", "--workers", "1"])


def manifest(folder: str) -> dict[str, object]:
    return json.loads((Path(folder) / "manifest.json").read_text())


def test_the_facts_come_before_the_documents_are_read(tmp_path: Path) -> None:
    SHAPES["qmsum"](tmp_path / "release")
    write(tmp_path / "release" / "data" / "ALL" / "jsonl" / "train.jsonl", b"no JSON\n")
    done = prepare("qmsum", "--release", "release", "--out", "out")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[:4] == [
        "qmsum (Zhong et al. 2021): from release",
        "  licence: MIT; the authors ask for research use only",
        "  documents: 1,257 train; 272 valid; 281 test",
        "  download: none",
    ]
    assert "train.jsonl, line 1: must be a JSON object" in done.stderr


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (
            ("billsum",),
            [
                "billsum (Kornilova and Eidelman 2019): from FiscalNote/billsum on the Hugging Face hub",
                "  licence: CC0 1.0",
                "  documents: 18,949 train, 5% of which become valid by a hash of the text; 3,269 test",
                "  download: about 114 MB, if it is not in the cache",
            ],
        ),
        (
            ("bigpatent", "--config", "d"),
            [
                "bigpatent, configuration d (Sharma et al. 2019): from NortheasternUniversity/big_patent on the "
                "Hugging Face hub",
                "  licence: CC BY 4.0",
                "  documents: 10,164 train; 565 valid; 565 test",
                "  download: about 10.1 GB, if it is not in the cache",
            ],
        ),
        (
            ("summscreen",),
            [
                "summscreen, configuration fd (Chen et al. 2022): from tau/scrolls on the Hugging Face hub",
                "  licence: MIT",
                "  documents: 3,673 train; 338 valid; 337 test only with --release",
                "  download: about 50 MB, if it is not in the cache",
            ],
        ),
        (
            ("govreport", "--aspects"),
            [
                "govreport_aspects (Huang et al. 2021): from launch/gov_report on the Hugging Face hub",
                "  licence: CC BY 4.0",
                "  reports, a document for each aspect: 11,005 train; 612 valid; 611 test",
                "  download: about 791 MB, if it is not in the cache",
            ],
        ),
    ],
)
def test_the_facts_are_those_of_the_configuration(
    words: tuple[str, ...], facts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyramidions.data.corpora.reading.fetch", refused)
    monkeypatch.setattr(datasets, "load_dataset", refused)
    done = prepare(*words, "--out", "out")
    assert done.exit_code == 1 and done.stderr.splitlines()[:4] == facts


def refused(*_: object, **__: object) -> None:
    raise RuntimeError("no network")


def test_the_data_folder_remembers_the_corpus(tmp_path: Path) -> None:
    SHAPES["qmsum"](tmp_path / "release")
    write(
        tmp_path / "own.jsonl", lines([{"id": "x", "article": "Is this mine ?", "abstract": "Yes.", "query": "Why?"}])
    )
    words = ("qmsum", "--release", "release", "--test", "own.jsonl", "--out", "qmsum")
    done = prepare(*words)
    assert done.exit_code == 0, done.stderr
    about = manifest("qmsum")
    assert about["settings"]["corpus"] == {  # type: ignore[index]
        "name": "qmsum",
        "config": None,
        "hub": None,
        "licence": "MIT; the authors ask for research use only",
        "splits": ["train", "valid"],
    }
    assert {split: each["documents"] for split, each in about["splits"].items()} == {  # type: ignore[attr-defined]
        "train": 6,
        "valid": 6,
        "test": 1,
    }
    # The folder of the same name, which was made here, is no input.
    assert "up to date" in prepare(*words).output


def test_aspects_of_reports_are_queries(tmp_path: Path) -> None:
    SHAPES["govreport_aspects"](tmp_path / "release")
    done = prepare("govreport", "--aspects", "--release", "release", "--out", "aspects")
    assert done.exit_code == 0, done.stderr
    assert manifest("aspects")["settings"]["corpus"]["name"] == "govreport_aspects"  # type: ignore[index]
    queries = [json.loads(line)["id"] for line in (Path("aspects") / "test.references.jsonl").read_text().splitlines()]
    assert queries == ["GAO-test/1", "GAO-test/2"] and manifest("aspects")["settings"]["queries"] is True  # type: ignore[index]


def test_a_folder_of_documents_wins_over_the_corpus_of_its_name(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        rows = [{"article": "The bees fly over roses.", "abstract": "Bees fly."}]
        write(tmp_path / "booksum" / f"{split}.jsonl", lines(rows * 3))
    done = CliRunner().invoke(main, ["prepare", "booksum", "--out", "out", "--vocab-size", "20", "--workers", "1"])
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("booksum is taken for the path here, not for the corpus of this name\n")
    assert "corpus" not in manifest("out")["settings"]  # type: ignore[operator]


def test_a_dataset_on_the_hub_is_known_by_its_name_there(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = datasets.Dataset.from_list([{"report": "The bees fly over roses.", "summary": "Bees fly."}] * 3)
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: asked.append((*a, k["split"])) or rows)
    hub = str(KNOWN["govreport"].hub)
    done = CliRunner().invoke(main, ["prepare", hub, "--out", "out", "--vocab-size", "20", "--workers", "1"])
    assert done.exit_code == 0, done.stderr
    assert manifest("out")["settings"]["corpus"]["name"] == "govreport"  # type: ignore[index]
    assert set(asked) == {(hub, "document", split) for split in ("train", "validation", "test")}


def test_fields_that_are_named_read_a_dataset_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = datasets.Dataset.from_list([{"text": "The bees fly over roses.", "title": "Bees fly."}] * 3)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows)
    words = ["--target-field", "title", "--source-field", "text", "--vocab-size", "20", "--workers", "1"]
    done = CliRunner().invoke(main, ["prepare", "FiscalNote/billsum", "--out", "out", *words])
    assert done.exit_code == 0, done.stderr
    assert "corpus" not in manifest("out")["settings"]  # type: ignore[operator]
    # Options may come in any order.
    summaries = [
        json.loads(line)["summary"] for line in (Path("out") / "test.references.jsonl").read_text().splitlines()
    ]
    assert summaries == ["Bees fly."] * 3


def test_a_folder_of_the_same_documents_is_kept_whatever_named_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = datasets.Dataset.from_list([{"article": "The bees fly over roses.", "abstract": "Bees fly."}] * 3)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows)
    words = ["prepare", "ccdv/arxiv-summarization", "--out", "out", "--vocab-size", "20", "--workers", "1"]
    fields = ["--source-field", "article"]
    assert CliRunner().invoke(main, [*words, *fields]).exit_code == 0
    assert "up to date" in CliRunner().invoke(main, words).output

"""`pyramidions prepare NAME`: what is told before anything is read, and what the data folder remembers."""

import json
import re
from pathlib import Path
from typing import Any

import datasets
import pytest
from click.testing import Result
from corpus_shapes import SHAPES, lines, write
from invoking import run

from pyramidions.data.corpora.table import KNOWN


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def prepare(*words: str, size: int = 36) -> Result:
    return run("prepare", *words, "--vocab-size", size, "--workers", 1)


def settings(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "manifest.json").read_text())["settings"]
    return found


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
    assert "train.jsonl," in done.stderr


@pytest.mark.parametrize(
    ("words", "facts"),
    [
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
def test_the_facts_are_told_first(words: tuple[str, ...], facts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert settings("qmsum")["corpus"] == {
        "name": "qmsum",
        "config": None,
        "hub": None,
        "licence": "MIT; the authors ask for research use only",
        "splits": ["train", "valid"],
    }
    splits = json.loads(Path("qmsum/manifest.json").read_text())["splits"]
    assert {split: each["documents"] for split, each in splits.items()} == {"train": 6, "valid": 6, "test": 1}
    # The folder of the same name, which was made here, is no input.
    assert re.match("qmsum is up to date", prepare(*words).stdout)


def test_aspects_of_reports_are_queries(tmp_path: Path) -> None:
    SHAPES["govreport_aspects"](tmp_path / "release")
    done = prepare("govreport", "--aspects", "--release", "release", "--out", "aspects")
    assert done.exit_code == 0, done.stderr
    assert settings("aspects")["corpus"]["name"] == "govreport_aspects" and settings("aspects")["queries"] is True
    references = (Path("aspects") / "test.references.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in references] == ["GAO-test/1", "GAO-test/2"]


def test_a_folder_of_documents_wins_over_the_corpus_of_its_name(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        rows = [{"article": "The bees fly over roses.", "abstract": "Bees fly."}]
        write(tmp_path / "booksum" / f"{split}.jsonl", lines(rows * 3))
    done = prepare("booksum", "--out", "out", size=20)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("booksum is taken for the path here, not for the corpus of this name\n")
    assert "corpus" not in settings("out")


def test_a_dataset_on_the_hub_is_known_unless_its_fields_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"report": "The bees fly over roses.", "summary": "Bees fly."}
    rows = datasets.Dataset.from_list([row] * 3)
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: asked.append((*a, k["split"])) or rows)
    hub = str(KNOWN["govreport"].hub)
    done = prepare(hub, "--out", "out", size=20)
    assert done.exit_code == 0, done.stderr
    assert settings("out")["corpus"]["name"] == "govreport"
    assert set(asked) == {(hub, "document", split) for split in ("train", "validation", "test")}
    monkeypatch.setattr(datasets, "get_dataset_split_names", lambda *_: ["train", "validation", "test"])
    fields = ("--target-field", "report", "--source-field", "summary")
    done = prepare(hub, "--out", "named", *fields, size=20)
    assert done.exit_code == 0, done.stderr
    assert "corpus" not in settings("named")
    summaries = (Path("named") / "test.references.jsonl").read_text().splitlines()
    assert [json.loads(line)["summary"] for line in summaries] == [row["report"]] * 3

"""Known corpora come from the hub as they lie there: tables through datasets, archives through its cache."""

from dataclasses import replace
from pathlib import Path

import datasets
import pytest
from corpus_shapes import SHAPES, texts
from hub_stand_in import Hub
from refusals import refused

from pyramidions.data.corpora.reading import configuration, read_corpus
from pyramidions.data.corpora.table import KNOWN, KnownCorpus
from pyramidions.data.readers import Document


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def card(config: str, folder: str, splits: tuple[str, ...]) -> str:
    lines = ["---", "configs:", f"- config_name: {config}", "  data_files:"]
    return "\n".join([*lines, *(f"  - split: {split}\n    path: {folder}/{split}-*" for split in splits), "---"])


def read(corpus: KnownCorpus) -> dict[str, list[Document]]:
    reading = read_corpus(corpus, configuration(corpus, None), None)
    return {split: list(reading.documents(split)) for split in reading.splits}


@pytest.mark.parametrize("name", ["arxiv", "billsum", "booksum"])
def test_datasets_reads_the_tables(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "hub"
    SHAPES[name](folder)
    if name == "billsum":
        (folder / "README.md").write_text(card("default", "data", ("train", "test", "ca_test")))
    elif name == "arxiv":
        (folder / "README.md").write_text(card("document", "document", ("train", "validation", "test")))
    found = read(replace(KNOWN[name], hub=str(folder)))
    assert list(found) == ["train", "valid", "test"]
    assert found["test"][1] == Document("2", *texts("test")[1])
    if name == "billsum":
        assert (len(found["train"]), len(found["valid"]), len(found["test"])) == (189, 11, 200)


@pytest.mark.parametrize(
    ("name", "ids"), [("samsum", ["7", "7", "7"]), ("cnn_dailymail", ["0001d1train", "0001d1validation", "0001d1test"])]
)
def test_datasets_reads_other_columns_and_leaves_other_tables(
    name: str, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    SHAPES[name](tmp_path / "hub")
    if name == "cnn_dailymail":
        (tmp_path / "hub" / "README.md").write_text(card("3.0.0", "3.0.0", ("train", "validation", "test")))
    found = read(replace(KNOWN[name], hub=str(tmp_path / "hub")))
    assert {split: found[split][0].id for split in found} == dict(zip(("train", "valid", "test"), ids, strict=True))


@pytest.mark.parametrize(
    ("name", "fetched", "counts"),
    [
        ("mediasum", "train.json validation.json test.json", {"train": 1, "valid": 1, "test": 1}),
        (
            "multi_news",
            "train.src.cleaned val.src.cleaned test.src.cleaned train.tgt val.tgt test.tgt",
            {"train": 2, "valid": 2, "test": 2},
        ),
        ("bigpatent", "train.zip val.zip test.zip", {"train": 2, "valid": 2, "test": 2}),
        ("summscreen", "summ_screen_fd.zip", {"train": 1, "valid": 1}),
    ],
)
def test_files_are_fetched_once(name: str, fetched: str, counts: dict[str, int], hub: Hub, tmp_path: Path) -> None:
    SHAPES[name](tmp_path / "shape")
    corpus = KNOWN[name]
    hub.add(f"datasets/{corpus.hub}", files(tmp_path / "shape"))
    found = read(corpus)
    assert {split: len(documents) for split, documents in found.items()} == counts
    requests = [line for line in hub.asked if line.startswith("GET") and "/resolve/" in line]
    assert hub.downloaded() == set(fetched.split()) and len(requests) == len(hub.downloaded())


def test_nothing_is_fetched_before_a_document_is_asked_for(hub: Hub) -> None:
    read_corpus(KNOWN["bigpatent"], "all", None)
    assert not hub.asked


def test_what_the_hub_lacks_is_named(hub: Hub) -> None:
    hub.add("datasets/tau/scrolls", {"README.md": b"# SCROLLS"})
    with refused("summ_screen_fd.zip"):
        read(KNOWN["summscreen"])


@pytest.mark.parametrize(("name", "config"), [("qmsum", ""), ("summscreen", "tms")])
def test_what_is_not_on_the_hub_is_told_with_its_home(name: str, config: str) -> None:
    with refused(KNOWN[name].home):
        read_corpus(KNOWN[name], config, None)

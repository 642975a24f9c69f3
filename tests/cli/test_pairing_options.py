"""`prepare --divide` and `prepare --select`; tests/bad_input has what they refuse."""

import json
import re
from pathlib import Path

import pytest
from invoking import run, succeed
from small_exports import extractor as exported

from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.data.select_sentences import select_tokens
from pyramidions.extract.concepts import hash_of
from pyramidions.extract.methods import find_method
from pyramidions.inference import LearnedRanker
from pyramidions.inference.selection_model import fingerprint
from pyramidions.text.outline import outline

NAMES = ["introduction", "methods", "results"]
TEXTS = [["bees fly ."], ["we measured bees with a ruler ."], ["they were fast .", "very fast ."]]
RECORD = {
    "article_id": "x",
    "article_text": ["flat ."],
    "abstract_text": ["<S> we measured bees . </S>", "<S> they were fast . </S>"],
    "section_names": NAMES,
    "sections": TEXTS,
}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    for split in ("train", "val", "test"):
        lines = [json.dumps(RECORD | {"article_id": f"{split}{n}"}) for n in range(4)]
        (folder / f"{split}.txt").write_text("\n".join(lines))
    return folder


def test_the_sections_of_the_release_become_pairs(release: Path, tmp_path: Path) -> None:
    options = ("--vocab-size", 30, "--divide", "sections", "--least-words", 2, "--workers", 1)
    result = run("prepare", release, "--out", tmp_path / "data", *options)
    assert re.findall(r"train: (\d+) documents made of (\d+)", result.output) == [("8", "4")]
    folder = DataFolder(tmp_path / "data")
    assert [each.id for each in folder.references("valid")][:2] == ["val0/2", "val0/3"]
    assert [each.summary for each in folder.references("valid")][:2] == ["we measured bees .", "they were fast ."]
    assert folder.references("test")[0].summary == "we measured bees .\nthey were fast ."


def test_a_table_of_ones_own_decides(release: Path, tmp_path: Path) -> None:
    table = tmp_path / "types.json"
    table.write_text('{"types": {"how": ["methods"]}, "train": ["how"], "write": ["how"]}')
    options = ("--vocab-size", 30, "--divide", "sections", "--least-words", 1, "--section-types", table)
    run("prepare", release, "--out", tmp_path / "data", "--workers", 1, *options)
    folder = DataFolder(tmp_path / "data")
    assert [each.id for each in folder.references("train")] == [f"train{n}/2" for n in range(4)]
    assert folder.manifest["settings"]["pairs"]["train"]["section_types"]["types"] == {"how": ["methods"]}


def test_sentences_are_selected_by_the_method_of_each_split(release: Path, tmp_path: Path) -> None:
    options = ("--select", "oracle", "--select-test", "lead", "--budget", 14)
    run("prepare", release, "--out", tmp_path / "data", "--vocab-size", 30, "--workers", 1, *options)
    folder = DataFolder(tmp_path / "data")
    pairs = folder.manifest["settings"]["pairs"]
    assert {split: each["method"] for split, each in pairs.items()} == {
        "train": "oracle",
        "valid": "oracle",
        "test": "lead",
    }
    assert folder.manifest["splits"]["test"]["source_tokens"]["max"] <= 14


def test_a_trained_extractor_selects(release: Path, tmp_path: Path) -> None:
    extractor = exported(tmp_path / "model")
    options = ("--vocab-size", 30, "--select", extractor, "--budget", 14, "--workers", 2)
    run("prepare", release, "--out", tmp_path / "data", *options)
    folder = DataFolder(tmp_path / "data")
    about = folder.manifest["settings"]["pairs"]["test"]
    assert about == {"kind": "sentences", "method": "model", "sha256": fingerprint(extractor), "budget": 14}
    found = outline("\n".join(f"# {name}\n" + "\n".join(s) for name, s in zip(NAMES, TEXTS, strict=True)))
    scores = LearnedRanker.from_pretrained(extractor, "cpu").rank(found)
    expected = [found.sentences[place].text for place in select_tokens(found, scores, folder.tokenizer(), 14)]
    ids = IndexedReader(folder.prefix("test", "source"))[0]
    assert folder.tokenizer().decode(ids) == " ".join(expected)


def test_a_model_of_concepts_selects(release: Path, tmp_path: Path) -> None:
    options = ("--vocab-size", 30, "--select", "biomedical", "--budget", 14, "--workers", 2)
    run("prepare", release, "--out", tmp_path / "data", *options)
    folder = DataFolder(tmp_path / "data")
    model = find_method("biomedical", "select").concepts
    about = {"kind": "sentences", "method": "concepts", "sha256": hash_of(model), "budget": 14}
    assert folder.manifest["settings"]["pairs"]["test"] == about


def test_the_test_split_is_not_divided_into_sentences(tmp_path: Path) -> None:
    record = {"article": "Bees dance at night. We watched two hives.", "abstract": "Two hives. Bees dance."}
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(f"{json.dumps(record)}\n" * 4)
    succeed("prepare", tmp_path, "--divide", "sentences", "--out", tmp_path / "data", "--vocab-size", 25)
    folder = DataFolder(tmp_path / "data")
    assert [len(list(folder.references(split))) for split in ("train", "test")] == [8, 4]
    assert folder.manifest["settings"]["pairs"] == {"train": {"kind": "single sentences"}}

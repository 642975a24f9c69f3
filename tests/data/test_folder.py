import json

import pytest
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder, Reference


@pytest.mark.parametrize(
    ("ask", "lacking"),
    [
        (lambda folder: folder.tokenizer(), "sentencepiece.model"),
        (lambda folder: folder.indexed("test", "source"), "test.source.bin; its splits are train"),
        (lambda folder: folder.references("test"), "test.references.jsonl; its splits are train"),
        (lambda folder: DataFolder(folder.path / "nowhere").tokenizer(), "nowhere"),
        (lambda folder: DataFolder(folder.path / "other").manifest, "manifest.json"),
    ],
)
def test_what_a_folder_lacks_is_named(tmp_path, ask, lacking):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "train.references.jsonl").write_text("")
    (tmp_path / "other").mkdir()
    with refused(lacking):
        ask(DataFolder(tmp_path))


def test_references_are_read_in_order(tmp_path):
    (tmp_path / "test.references.jsonl").write_text(
        '{"id": "b", "summary": "one\\ntwo"}\n{"id": 1, "summary": "\\u2028"}\n'
    )
    assert DataFolder(tmp_path).references("test") == [Reference("b", "one\ntwo"), Reference("1", "\u2028")]


@pytest.mark.parametrize("line", ["x", "[]", '{"id": "a"}', '{"id": "a", "summary": 3}'])
def test_a_bad_reference_is_named_by_its_line(tmp_path, line):
    (tmp_path / "test.references.jsonl").write_text('{"id": "a", "summary": "x"}\n' + line + "\n")
    with pytest.raises(UserError):
        DataFolder(tmp_path).references("test")


LENGTHS = {"mean": 1.5, "max": 2}
MANIFEST = {
    "settings": {},
    "vocab_size": 60,
    "inputs": {"train": {"skipped": 0}},
    "splits": {"train": {"documents": 1, "source_tokens": LENGTHS, "target_tokens": LENGTHS, "target_words": LENGTHS}},
    "files": {},
}


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ({"splits": None}, "splits"),
        ({"settings": 5}, "settings"),
        ({"files": []}, "files"),
        ({"inputs": {}}, "inputs.train.skipped"),
        ({"splits": {"train": MANIFEST["splits"]["train"] | {"target_words": {}}}}, "splits.train.target_words.mean"),
        ("[", "manifest.json"),
    ],
)
def test_a_manifest_without_what_is_read_is_named(tmp_path, change, lacking):
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(MANIFEST))
    assert DataFolder(tmp_path).manifest == MANIFEST
    path.write_text(change if isinstance(change, str) else json.dumps(MANIFEST | change))
    with refused(lacking):
        _ = DataFolder(tmp_path).manifest

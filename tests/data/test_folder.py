import json

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder, Reference


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UserError, match=r"The data folder .*nowhere does not exist\."):
        DataFolder(tmp_path / "nowhere").tokenizer()


def test_a_foreign_folder_is_named_with_what_it_lacks(tmp_path):
    folder = DataFolder(tmp_path)
    for ask, name in (
        (folder.tokenizer, "sentencepiece.model"),
        (lambda: folder.indexed("train", "source"), "train.source.bin"),
        (lambda: folder.references("test"), "test.references.jsonl"),
        (lambda: folder.manifest, "manifest.json"),
    ):
        with pytest.raises(UserError, match=rf"is not a folder made by `pyramidions prepare`: it lacks {name}\."):
            ask()


def test_a_missing_split_is_named_with_those_present(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "train.references.jsonl").write_text("")
    with pytest.raises(UserError, match=r"lacks test\.source\.bin; its splits are train\."):
        DataFolder(tmp_path).indexed("test", "source")


def test_references_are_read_in_order(tmp_path):
    (tmp_path / "test.references.jsonl").write_text(
        '{"id": "b", "summary": "one\\ntwo"}\n{"id": 1, "summary": "\\u2028"}\n'
    )
    assert DataFolder(tmp_path).references("test") == [Reference("b", "one\ntwo"), Reference("1", "\u2028")]


@for_each("line", ["x", "[]", '{"id": "a"}', '{"id": "a", "summary": 3}'])
def test_a_bad_reference_is_named_by_its_line(tmp_path, line):
    (tmp_path / "test.references.jsonl").write_text('{"id": "a", "summary": "x"}\n' + line + "\n")
    with pytest.raises(UserError, match=r'test\.references\.jsonl, line 2: each line must be {"id": \.\.\., "summ'):
        DataFolder(tmp_path).references("test")


def test_a_damaged_manifest_is_named(tmp_path):
    (tmp_path / "manifest.json").write_text("[")
    with pytest.raises(UserError, match=r"manifest\.json must be a JSON object as written by"):
        _ = DataFolder(tmp_path).manifest


LENGTHS = {"mean": 1.5, "max": 2}
MANIFEST = {
    "settings": {},
    "vocab_size": 60,
    "inputs": {"train": {"skipped": 0}},
    "splits": {"train": {"documents": 1, "source_tokens": LENGTHS, "target_tokens": LENGTHS, "target_words": LENGTHS}},
    "files": {},
}


def test_a_manifest_is_read(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    assert DataFolder(tmp_path).manifest == MANIFEST


@for_each(
    ("change", "lacking"),
    [
        ({"splits": None}, r"splits"),
        ({"settings": None}, r"settings"),
        ({"settings": 5}, r"settings"),
        ({"files": []}, r"files"),
        ({"inputs": {}}, r"inputs\.train\.skipped"),
        (
            {"splits": {"train": {**MANIFEST["splits"]["train"], "target_words": {}}}},
            r"splits\.train\.target_words\.mean",
        ),
    ],
)
def test_a_manifest_without_what_is_read_is_named(tmp_path, change, lacking):
    (tmp_path / "manifest.json").write_text(json.dumps({**MANIFEST, **change}))
    with pytest.raises(UserError, match=rf"manifest\.json must be as written by .*, but lacks {lacking}\.$"):
        _ = DataFolder(tmp_path).manifest

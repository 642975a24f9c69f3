"""Prepared folders that are damaged: one sentence each, which names the file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedWriter
from pyramidions.data.manifest import write_manifest
from pyramidions.data.verify import verify_split, verify_tokenizer

LENGTHS = {"mean": 3, "max": 3}


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Return a folder of two documents, made by hand."""
    folder = DataFolder(tmp_path)
    for side in ("source", "target"):
        with IndexedWriter(tmp_path / f"test.{side}", 60) as writer:
            writer.add([5, 6, 2])
            writer.add([7, 2])
    folder.references_path("test").write_text('{"id": "a", "summary": "x"}\n{"id": "b", "summary": "y"}\n')
    folder.sentencepiece_path.write_bytes(b"model")
    about = {"documents": 2, "source_tokens": LENGTHS, "target_tokens": LENGTHS, "target_words": LENGTHS}
    write_manifest(folder, {}, {"test": {"skipped": 0}}, {"test": about}, 60)
    return folder


def test_an_undamaged_folder_passes(folder: DataFolder) -> None:
    verify_split(folder, "test", hashes=True)
    verify_tokenizer(folder)


def test_a_folder_whose_manifest_has_no_sizes_passes(folder: DataFolder) -> None:
    manifest = json.loads(folder.manifest_path.read_text())
    del manifest["sizes"]
    folder.manifest_path.write_text(json.dumps(manifest))
    verify_split(DataFolder(folder.path), "test", hashes=True)


def test_a_split_that_was_added_later_passes_where_its_indices_are_sound(folder: DataFolder) -> None:
    for path in list(folder.path.glob("test.*")):
        shutil.copy(path, path.with_name(path.name.replace("test.", "test2.")))
    verify_split(folder, "test2")
    with IndexedWriter(folder.prefix("test2", "target"), 60) as writer:
        writer.add([5, 2])
    with pytest.raises(UserError, match=r"holds 2 documents but 1 summaries in 'test2'\.$"):
        verify_split(folder, "test2")


def put(offset: int, byte: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:offset] + bytes([byte]) + content[offset + 1 :]


@pytest.mark.parametrize("sizes", [True, False], ids=["with sizes", "without"])
@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("test.source.bin", lambda content: content[:-2], r"test\.source\.bin is damaged: "),
        ("test.source.bin", lambda content: content + b"\0\0", r"test\.source\.bin is damaged: "),
        ("test.source.bin", lambda content: b"", r"test\.source\.bin is damaged: "),
        ("test.target.idx", lambda content: content[:20], r"test\.target\.idx (is damaged|must be an index)"),
        ("test.target.idx", lambda content: content + b"\0", r"test\.target\.idx is damaged: "),
        ("test.target.idx", put(0, 0), r"test\.target\.idx must be an index in fairseq's mmap format\.$"),
        ("test.target.idx", put(9, 2), r"test\.target\.idx must have the version 1 of its format, but has 2\.$"),
        ("test.target.idx", put(17, 7), r"test\.target\.idx must have the type code 8 or 9 for its tokens, but has 7"),
        ("test.target.idx", put(17, 9), r"test\.target\.idx is damaged: its texts do not follow each other\.$"),
        ("test.target.idx", put(18, 1), r"test\.target\.idx is damaged: it is not as long as its 1 items make it\.$"),
        ("test.target.idx", put(26, 4), r"test\.target\.idx is damaged: its texts do not follow each other\.$"),
        ("test.target.idx", put(30, 3), r"test\.target\.bin is damaged: it does not hold the 6 tokens"),
        ("test.target.idx", put(42, 4), r"test\.target\.idx is damaged: its texts do not follow each other\.$"),
    ],
)
def test_damaged_token_files_are_named(
    folder: DataFolder, name: str, damage: Callable[[bytes], bytes], sentence: str, sizes: bool
) -> None:
    if not sizes:
        manifest = json.loads(folder.manifest_path.read_text())
        del manifest["sizes"]
        folder.manifest_path.write_text(json.dumps(manifest))
    path = folder.path / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=sentence):
        verify_split(DataFolder(folder.path), "test")


def test_another_size_is_told_beside_the_right_one(folder: DataFolder) -> None:
    folder.references_path("test").write_text('{"id": "a", "summary": "x"}\n')
    with pytest.raises(
        UserError,
        match=r"test\.references\.jsonl is damaged: it must have 56 bytes, .* but has 28\.$",
    ):
        verify_split(folder, "test")


@pytest.mark.parametrize(
    "name", ["test.source.bin", "test.source.idx", "test.target.bin", "test.target.idx", "test.references.jsonl"]
)
def test_a_missing_file_is_named(folder: DataFolder, name: str) -> None:
    (folder.path / name).unlink()
    with pytest.raises(UserError, match=f"lacks {name}[;,]"):
        verify_split(folder, "test")


def test_a_flipped_bit_among_the_tokens_is_found_where_hashes_are_asked_for(folder: DataFolder) -> None:
    path = folder.tokens_path("test", "source")
    path.write_bytes(put(0, 4)(path.read_bytes()))
    verify_split(folder, "test")
    with pytest.raises(UserError, match=r"test\.source\.bin is damaged: its SHA-256 is not the one in the manifest\.$"):
        verify_split(folder, "test", hashes=True)


def test_a_flipped_bit_in_the_tokenizer_is_always_found(folder: DataFolder) -> None:
    folder.sentencepiece_path.write_bytes(b"mOdel")
    with pytest.raises(UserError, match=r"sentencepiece\.model is damaged: its SHA-256 is not"):
        verify_tokenizer(folder)


def test_a_tokenizer_without_a_manifest_is_taken_as_it_is(folder: DataFolder) -> None:
    folder.manifest_path.unlink()
    verify_tokenizer(folder)
    with pytest.raises(UserError, match=r"it lacks manifest\.json\.$"):
        verify_split(folder, "test")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"files": {}}, r"hold the SHA-256 of test\.source\.idx under `files`, but does not\.$"),
        ({"files": {"test.source.bin": None}}, r"lacks files\.test\.source\.bin\.$"),
        ({"files": {"test.source.bin": 7}}, r"lacks files\.test\.source\.bin\.$"),
        ({"sizes": {"test.source.bin": "10"}}, r"lacks sizes\.test\.source\.bin\.$"),
        ({"sizes": []}, r"lacks sizes\.$"),
        ({"splits": {"test": 3}}, r"lacks splits\.test\.documents\.$"),
    ],
)
def test_a_damaged_manifest_is_named_with_the_entry(folder: DataFolder, change: dict[str, Any], sentence: str) -> None:
    manifest = json.loads(folder.manifest_path.read_text())
    folder.manifest_path.write_text(json.dumps({**manifest, **change}))
    with pytest.raises(UserError, match=rf"manifest\.json must .*{sentence}"):
        verify_split(DataFolder(folder.path), "test", hashes=True)


def test_documents_that_the_manifest_does_not_count_are_noticed(folder: DataFolder) -> None:
    manifest = json.loads(folder.manifest_path.read_text())
    manifest["splits"]["test"]["documents"] = 3
    folder.manifest_path.write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"holds 2 documents in 'test', but its manifest says 3\.$"):
        verify_split(DataFolder(folder.path), "test")

"""Prepared folders that are damaged: one sentence each, which names the file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedWriter
from pyramidions.data.manifest import write_manifest

LENGTHS = {"mean": 3, "max": 3}
COUNTED = ("source_tokens", "target_tokens", "target_words")


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
    about = {"documents": 2, **dict.fromkeys(COUNTED, LENGTHS)}
    write_manifest(folder, {}, {"test": {"skipped": 0}}, {"test": about}, 60)
    return folder


def without_sizes(folder: DataFolder) -> None:
    manifest = json.loads(folder.manifest_path.read_text())
    del manifest["sizes"]
    folder.manifest_path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("sizes", [True, False])
def test_an_undamaged_folder_passes(folder: DataFolder, sizes: bool) -> None:
    without_sizes(folder) if not sizes else None
    DataFolder(folder.path).verify("test", hashes=True)
    folder.verify_tokenizer()


def test_a_tokenizer_without_a_manifest_is_taken_as_it_is(folder: DataFolder) -> None:
    folder.manifest_path.unlink()
    folder.verify_tokenizer()
    with pytest.raises(UserError):
        folder.verify("test")


def test_a_split_that_was_added_later_passes_where_its_indices_are_sound(folder: DataFolder) -> None:
    for path in list(folder.path.glob("test.*")):
        shutil.copy(path, path.with_name(path.name.replace("test.", "test2.")))
    folder.verify("test2")
    with IndexedWriter(folder.prefix("test2", "target"), 60) as writer:
        writer.add([5, 2])
    with pytest.raises(UserError):
        folder.verify("test2")


def put(offset: int, byte: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:offset] + bytes([byte]) + content[offset + 1 :]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("test.source.bin", lambda content: content[:-2]),
        ("test.source.bin", lambda content: content + b"\0\0"),
        ("test.source.bin", lambda content: b""),
        ("test.target.idx", lambda content: content[:20]),
        ("test.target.idx", lambda content: content + b"\0"),
        ("test.target.idx", put(0, 0)),  # another format
        ("test.target.idx", put(9, 2)),  # another version
        ("test.target.idx", put(17, 7)),  # another type of tokens
        ("test.target.idx", put(17, 9)),
        ("test.target.idx", put(18, 1)),  # fewer texts
        ("test.target.idx", put(26, 4)),  # longer ones
        ("test.target.idx", put(42, 4)),  # at other places
        ("test.target.bin", lambda content: content[:-4]),
    ],
)
def test_damaged_token_files_are_named(folder: DataFolder, name: str, damage: Callable[[bytes], bytes]) -> None:
    without_sizes(folder)
    path = folder.path / name
    path.write_bytes(damage(path.read_bytes()))
    with refused(name):
        DataFolder(folder.path).verify("test")


@pytest.mark.parametrize("name", ["source.bin", "target.idx"])
def test_another_size_is_found_without_reading(folder: DataFolder, name: str) -> None:
    path = folder.path / f"test.{name}"
    path.write_bytes(path.read_bytes() + b"\0\0")
    with pytest.raises(UserError):
        folder.verify("test")


@pytest.mark.parametrize("name", ["test.source.bin", "test.target.idx", "test.references.jsonl"])
def test_a_missing_file_is_named(folder: DataFolder, name: str) -> None:
    (folder.path / name).unlink()
    with pytest.raises(UserError):
        folder.verify("test")


def test_a_flipped_bit_is_found_where_hashes_are_asked_for_and_in_the_tokenizer_always(folder: DataFolder) -> None:
    path = folder.tokens_path("test", "source")
    path.write_bytes(put(0, 4)(path.read_bytes()))
    folder.verify("test")
    with refused("test.source.bin"):
        folder.verify("test", hashes=True)
    folder.sentencepiece_path.write_bytes(b"mOdel")
    with refused("sentencepiece.model"):
        folder.verify_tokenizer()


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"files": {}}, "test.source.idx"),
        ({"files": {"test.source.bin": 7}}, "files.test.source.bin"),
        ({"sizes": {"test.source.bin": "10"}}, "sizes.test.source.bin"),
        ({"sizes": []}, "sizes"),
        ({"splits": {"test": 3}}, "splits.test.documents"),
        ({"splits": {"test": {"documents": 3, **dict.fromkeys(COUNTED, LENGTHS)}}}, "manifest says 3"),
    ],
)
def test_a_damaged_manifest_is_named_with_the_entry(folder: DataFolder, change: dict[str, Any], entry: str) -> None:
    manifest = json.loads(folder.manifest_path.read_text())
    folder.manifest_path.write_text(json.dumps(manifest | change))
    with refused(entry):
        DataFolder(folder.path).verify("test", hashes=True)

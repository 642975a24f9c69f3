"""Texts are read in parts that are cut at white space."""

import gzip
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data import text_streams
from pyramidions.data.text_streams import TextStream, fetched_text, open_text, streamed_dataset

TEXT = "Yksi kaksi\nkolme  neljä viisi "


def parts(stream: TextStream) -> list[str]:
    return list(stream.read())


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_plain_text_comes_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(text_streams, "_BLOCK", 7)
    path = tmp_path / f"text.txt{ending}"
    path.write_bytes(pack(TEXT.encode()))
    found = parts(open_text(path))
    assert "".join(found) == TEXT and len(found) > 3
    assert all(part[0] in " \n" for part in found[1:])


def test_texts_of_records_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text("".join(json.dumps({"text": text, "body": "b"}) + "\n" for text in ("one", "two")))
    assert parts(open_text(path)) == ["one\ntwo\n"]
    assert parts(open_text(path, "body")) == ["b\nb\n"]
    with pytest.raises(UserError):
        parts(open_text(path, "title"))


def test_a_dataset_is_streamed_split_by_split(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({"text": "one"}) + "\n" + json.dumps({"text": "two"}) + "\n")
    (tmp_path / "test.jsonl").write_text(json.dumps({"text": "three"}) + "\n")
    assert parts(streamed_dataset(str(tmp_path), None, "train")) == ["one\ntwo\n"]
    assert parts(streamed_dataset(str(tmp_path), None, "test")) == ["three\n"]
    with pytest.raises(UserError):
        parts(streamed_dataset(str(tmp_path), None, "test", "title"))
    with pytest.raises(UserError):
        parts(streamed_dataset(str(tmp_path), None, "other"))


def test_lines_of_a_packed_text_and_of_what_was_saved_to_disk_are_streamed(tmp_path: Path) -> None:
    path = tmp_path / "fi.txt.xz"
    path.write_bytes(lzma.compress(b"one\n\ntwo\n"))
    stream = streamed_dataset("text", None, "train", files=str(path))
    assert parts(stream) == ["one\n\ntwo\n"] and stream.source == f"{path}/train"
    texts = datasets.Dataset.from_dict({"text": ["one", "two"]})
    datasets.DatasetDict({"train": texts}).save_to_disk(tmp_path / "saved")
    assert parts(streamed_dataset(str(tmp_path / "saved"), None, "train")) == ["one\ntwo\n"]


def test_a_text_in_an_archive_is_fetched_when_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "text8.zip", "w") as archive:
        archive.writestr("text8", " anarchism originated")
    stream = fetched_text(str(tmp_path / "text8.zip"), "text8")
    assert "".join(parts(stream)) == " anarchism originated"
    missing = fetched_text(str(tmp_path / "missing.zip"), "text8")
    with pytest.raises(UserError):
        parts(missing)


def test_a_packed_text_that_ends_early_is_named(tmp_path: Path) -> None:
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"one two " * 9)[:-9])
    with refused(str(tmp_path / "cut.xz")):
        parts(open_text(tmp_path / "cut.xz"))

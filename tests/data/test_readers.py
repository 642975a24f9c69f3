import errno
import gzip
import json
import lzma
import os
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data import readers
from pyramidions.data.readers import Corpus, Document, find_splits, known_fields
from pyramidions.documents import records
from pyramidions.documents.record_fields import FieldNames

RECORDS = [
    {"id": "a", "article": "First text. Σ", "abstract": "first"},
    {"id": "b", "article": "Second text.", "abstract": "second\nline"},
]
DOCUMENTS = [Document("a", "First text. Σ", "first"), Document("b", "Second text.", "second\nline")]
LINES = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS).encode()


def read(path, *args, **options):
    return list(Corpus(str(path), *args, **options))


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("ending", "compress"), [("jsonl", bytes), ("txt", bytes), ("Jsonl.GZ", gzip.compress), ("txt.xz", lzma.compress)]
)
def test_json_lines_are_read_whatever_the_compression(tmp_path, ending, compress):
    # A byte-order mark and blank lines are no text.
    corpus = Corpus(str(write(tmp_path / f"x.{ending}", compress(b"\xef\xbb\xbf" + LINES + b"\n  \n"))))
    assert list(corpus) == DOCUMENTS
    assert list(corpus) == DOCUMENTS
    size, unit = corpus.size()
    assert unit == "B"
    assert [record.progress for _, record in corpus.with_records()][-1] <= size


def test_parquet_is_read(tmp_path):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(RECORDS), tmp_path / "x.parquet")
    corpus = Corpus(str(tmp_path / "x.parquet"))
    assert list(corpus) == DOCUMENTS
    assert corpus.size() == (2, "rows")


def test_the_release_format_is_known_by_its_fields(tmp_path):
    record = {
        "article_id": "0704.0001",
        "article_text": ["a first sentence .", "a second ."],
        "abstract_text": ["<S> in short . </S>", "<S> done . </S>"],
        "labels": None,
        "section_names": ["intro"],
        "sections": [["a first sentence .", "a second ."]],
    }
    path = write(tmp_path / "train.jsonl", json.dumps(record).encode())
    assert read(path) == [Document("0704.0001", "a first sentence .\na second .", "in short .\ndone .")]


def hub_rows(*rows):
    return datasets.Dataset.from_list([{"article": f"text {row}", "abstract": f"short {row}"} for row in rows])


def test_a_dataset_saved_to_disk_is_read_and_rows_without_id_are_counted(tmp_path):
    splits = {"train": hub_rows("a", "b"), "validation": hub_rows("c"), "test": hub_rows("d")}
    datasets.DatasetDict(splits).save_to_disk(str(tmp_path / "arxiv"))
    assert read(tmp_path / "arxiv", "train") == [Document("1", "text a", "short a"), Document("2", "text b", "short b")]
    assert read(tmp_path / "arxiv", "valid") == [Document("1", "text c", "short c")]
    assert Corpus(str(tmp_path / "arxiv"), "test").size() == (1, "rows")


def test_a_folder_of_the_shape_of_the_hub_is_read(tmp_path, monkeypatch):
    folder = tmp_path / "arxiv-summarization"
    (folder / "data").mkdir(parents=True)
    for split in ("train", "validation", "test"):
        hub_rows(split).to_parquet(str(folder / "data" / f"{split}-00000-of-00001.parquet"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for split, name in (("train", "train"), ("valid", "validation"), ("test", "test")):
        assert read(folder, split) == [Document("1", f"text {name}", f"short {name}")]


def test_a_hub_name_goes_to_datasets_with_its_configuration(monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: asked.append((a, k)) or hub_rows("x"))
    assert read("ccdv/arxiv-summarization", "valid", config="document") == [Document("1", "text x", "short x")]
    assert asked == [(("ccdv/arxiv-summarization", "document"), {"split": "validation"})]


def test_field_names_can_be_given(tmp_path):
    path = write(tmp_path / "x.jsonl", b'{"body": "long text", "abstract": "short", "key": 7}\n')
    fields = known_fields("body", None, "key")
    assert fields == FieldNames("body", "abstract", "key")
    assert read(path, fields=fields) == [Document("7", "long text", "short")]
    assert known_fields(None, None, None) is None


def test_empty_documents_are_left_out_on_demand_and_counted(tmp_path):
    empty = [b'{"id": "c", "article": " \\u200b ", "abstract": "x"}\n', b'{"article": "x", "abstract": null}\n']
    corpus = Corpus(str(write(tmp_path / "x.jsonl", b"".join(empty) + LINES)), skip_empty=True)
    assert list(corpus) == DOCUMENTS
    assert corpus.skipped == 2


@pytest.mark.parametrize("name", ["key", "id"])
def test_an_id_field_that_was_asked_for_must_be_there(tmp_path, name):
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"article": "x", "abstract": "y"}]), path)
    with pytest.raises(UserError):
        read(path, fields=known_fields(None, None, name))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.jsonl.gz", gzip.compress(LINES, mtime=0)[:-9]),
        ("x.jsonl.xz", lzma.compress(LINES)[:-9]),
        ("x.jsonl.xz", lzma.compress(LINES + bytes(3 * 2**20))),
    ],
)
def test_a_bad_file_is_named(tmp_path, monkeypatch, name, data):
    monkeypatch.setattr(records, "LINE_LIMIT", 1)
    with refused(name):
        read(write(tmp_path / name, data))


@pytest.mark.parametrize("names", ["train.jsonl.xz validation.jsonl", "train.txt val.txt", "train.JSONL val.Jsonl.GZ"])
def test_a_folder_offers_its_files(tmp_path, names):
    train, valid = (str(write(tmp_path / name, b"")) for name in names.split())
    assert find_splits(str(tmp_path)) == {"train": train, "valid": valid}


def test_a_dataset_out_of_reach_offers_all_splits_and_none_can_be_read(monkeypatch):
    def refuse(*args, **options):
        raise ConnectionError("no\nnetwork")

    monkeypatch.setattr(datasets, "get_dataset_split_names", refuse)
    monkeypatch.setattr(datasets, "load_dataset", refuse)
    assert find_splits("a/b") == {"train": "a/b", "valid": "a/b", "test": "a/b"}
    with pytest.raises(UserError):
        read("a/b", "test")


@pytest.mark.parametrize("files", [["all.jsonl"], ["train.jsonl", "train.jsonl.xz"], ["paper.pdf"], ["notes.md"]])
def test_an_input_that_offers_no_splits_is_refused(tmp_path, files):
    paths = [write(tmp_path / name, b"x") for name in files]
    with pytest.raises(UserError):
        find_splits(str(paths[0] if files == ["all.jsonl"] else tmp_path))


def test_a_dataset_offers_the_splits_that_it_has(tmp_path):
    saved, folder = tmp_path / "saved", tmp_path / "folder"
    datasets.DatasetDict({"train": hub_rows("a"), "test": hub_rows("b")}).save_to_disk(str(saved))
    (folder / "data").mkdir(parents=True)
    for split in ("train", "test"):
        hub_rows(split).to_parquet(str(folder / "data" / f"{split}-00000-of-00001.parquet"))
    for path in map(str, (saved, folder)):
        assert find_splits(path) == {"train": path, "test": path}
    with pytest.raises(UserError):
        read(saved, "valid")
    datasets.DatasetDict({"full": hub_rows("a")}).save_to_disk(str(tmp_path / "other"))
    with pytest.raises(UserError):
        find_splits(str(tmp_path / "other"))


def test_a_folder_that_the_library_datasets_would_read_says_so_without_it(tmp_path, monkeypatch):
    write(tmp_path / "mine.jsonl", b"{}")
    assert find_splits(str(tmp_path)) == {"train": str(tmp_path)}
    monkeypatch.setattr(readers, "find_spec", lambda _: None)
    with refused("the library datasets"):
        find_splits(str(tmp_path))


def test_what_the_system_refuses_to_read_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "x.jsonl", LINES)

    def refuse(self, *args):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError):
        read(path)


def test_rows_of_large_parquet_cells_are_read_one_at_a_time_and_those_beyond_the_limit_not(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "LINE_LIMIT", 1)
    rows = [{"id": f"{i}", "article": f"{i}" + "x" * 600_000, "abstract": "y"} for i in range(5)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=3)
    taken = []
    batches = pyarrow.parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        pyarrow.parquet.ParquetFile,
        "iter_batches",
        lambda self, size, groups: taken.append((size, groups)) or batches(self, size, groups),
    )
    assert [document.id for document in read(tmp_path / "x.parquet")] == ["0", "1", "2", "3", "4"]
    assert taken == [(1, [0]), (1, [1])]
    huge = [{"article": "x" * (3 * 2**20), "abstract": "y"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(huge), tmp_path / "y.parquet", compression="zstd")
    with pytest.raises(UserError):
        read(tmp_path / "y.parquet")
    assert len(taken) == 2


def test_a_pipe_or_a_device_is_no_input(tmp_path):
    os.mkfifo(tmp_path / "train.jsonl")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    assert find_splits(str(tmp_path)) == {"train": str(tmp_path / "train.jsonl")}
    for name in ("train.jsonl", "zero.txt", "loop.txt"):
        with refused(name):
            read(tmp_path / name)


def test_repeated_ids_are_numbered_on_demand_and_unique_then(tmp_path):
    ids = ["a", "a", "a#2", "a", "b", "a#2"]
    lines = "".join(json.dumps({"id": name, "article": "x", "abstract": "y"}) + "\n" for name in ids)
    path = write(tmp_path / "x.jsonl", lines.encode())
    found = [document.id for document in read(path, number_repeated_ids=True)]
    assert found == ["a", "a#2", "a#2#2", "a#3", "b", "a#2#3"]

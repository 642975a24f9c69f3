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
from tables import for_each

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


@for_each(
    ("ending", "compress"),
    [
        ("jsonl", bytes),
        ("jsonl.gz", gzip.compress),
        ("jsonl.xz", lzma.compress),
        ("txt", bytes),
        ("txt.gz", gzip.compress),
        ("txt.xz", lzma.compress),
    ],
)
def test_json_lines_are_read_whatever_the_compression(tmp_path, ending, compress):
    corpus = Corpus(str(write(tmp_path / f"x.{ending}", compress(LINES))))
    assert list(corpus) == DOCUMENTS
    assert list(corpus) == DOCUMENTS
    size, unit = corpus.size()
    assert unit == "B"
    assert [record.progress for _, record in corpus.with_records()][-1] == size


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
    assert read(tmp_path / "arxiv", "train") == [
        Document("1", "text a", "short a"),
        Document("2", "text b", "short b"),
    ]
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


def test_a_byte_order_mark_and_blank_lines_are_no_text(tmp_path):
    assert read(write(tmp_path / "x.jsonl", b"\xef\xbb\xbf" + LINES + b"\n  \n")) == DOCUMENTS


def test_empty_documents_are_left_out_on_demand_and_counted(tmp_path):
    empty = b'{"id": "c", "article": " \\u200b ", "abstract": "x"}\n'
    corpus = Corpus(str(write(tmp_path / "x.jsonl", empty + LINES)), skip_empty=True)
    assert list(corpus) == DOCUMENTS
    assert corpus.skipped == 1


@for_each(
    ("data", "message"),
    [
        (
            b'{"id": "c", "article": "x"}\n',
            r"line 3: lacks the field 'abstract'; its fields are 'id', 'article'; --target-field names another\.",
        ),
        (b'{"id": "c", "article": "x", "abstract": " \\n"}\n', r"line 3: the field 'abstract' is empty\."),
        (b'{"id": "c", "article": [], "abstract": "x"}\n', r"line 3: the field 'article' is empty\."),
        (b'{"id": "c", "article": 3, "abstract": "x"}\n', r"line 3: the field 'article' must be text .* is a number"),
        (b'{"id": "c", "article": ["x", 3], "abstract": "x"}\n', r"line 3: .* is a list that holds a number\."),
        (
            b'{"id": "c", "article": null, "abstract": "x"}\n',
            r"line 3: the field 'article' must be text, but is null\.",
        ),
        (
            b'{"id": "a", "article": "x", "abstract": "x"}\n',
            r"line 3: the id 'a' came before; .*; --number-repeated-ids numbers them\.",
        ),
        (b'["x"]\n', r"line 3: must be a JSON object, but is a list\."),
        (b'{"id": "c", \n', r"line 3: must be a JSON object, but it is not JSON \("),
        (b"[" * 100_000 + b"\n", r"line 3: must be a JSON object, but its brackets are nested too deeply\."),
        (b'{"id": "caf\xe9"}\n', r"line 3: must be UTF-8, but byte 12 is 0xe9 \(if it is WINDOWS-1252, "),
    ],
)
def test_a_bad_record_is_named_by_file_and_line(tmp_path, data, message):
    with pytest.raises(UserError, match=r"x\.jsonl, " + message):
        read(write(tmp_path / "x.jsonl", LINES + data))


def test_a_bad_row_is_named(tmp_path):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"text": "x"}]), tmp_path / "x.parquet")
    with pytest.raises(
        UserError,
        match=r"x\.parquet, row 1: lacks the field 'article'; its fields are 'text'; --source-field names another\.",
    ):
        read(tmp_path / "x.parquet")


@pytest.mark.parametrize("name", ["key", "id"])
def test_an_id_field_that_was_asked_for_must_be_there(tmp_path, name):
    path = write(tmp_path / "x.jsonl", b'{"article": "x", "abstract": "y"}\n')
    with pytest.raises(
        UserError, match=f"line 1: lacks the field '{name}'; its fields are 'article', 'abstract'; --id-f"
    ):
        read(path, fields=known_fields(None, None, name))


@for_each(
    ("name", "data", "message"),
    [
        ("x.jsonl", None, r"The file .*x\.jsonl does not exist\."),
        ("x.parquet", None, r"The file .*x\.parquet does not exist\."),
        ("x.jsonl", b"", r"x\.jsonl has no documents\."),
        ("x.csv", b"x", r"x\.csv must end in one of \.jsonl, \.jsonl\.gz, \.jsonl\.xz, \.txt, .*, \.parquet\."),
        (
            "x.txt",
            b"plain text\n",
            r"x\.txt, line 1: must be a JSON object, but it is not JSON \(",
        ),
        ("x.parquet", b"x", r"x\.parquet is not a Parquet file"),
        ("x.jsonl.gz", LINES, r"x\.jsonl\.gz is damaged after line 0"),
        ("x.jsonl.gz", gzip.compress(LINES, mtime=0)[:-9], r"x\.jsonl\.gz is damaged after line \d"),
        ("x.jsonl.xz", lzma.compress(LINES)[:-9], r"x\.jsonl\.xz is damaged after line \d"),
        ("no/such/thing", None, r"no/such/thing is neither a file, nor a folder, nor the name of a Hugging Face"),
    ],
)
def test_a_bad_file_is_named(tmp_path, name, data, message):
    if data is not None:
        write(tmp_path / name, data)
    with pytest.raises(UserError, match=message):
        read(tmp_path / name)


def test_a_missing_split_is_named(tmp_path):
    datasets.DatasetDict({"train": hub_rows("a")}).save_to_disk(str(tmp_path / "arxiv"))
    with pytest.raises(UserError, match=r"The dataset .*arxiv has no split 'validation'\."):
        read(tmp_path / "arxiv", "valid")


def test_a_dataset_out_of_reach_is_one_sentence(monkeypatch):
    def refuse(*args, **options):
        raise ConnectionError("no\nnetwork")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(UserError, match=r"The dataset a/b, split 'test', cannot be loaded: no network$"):
        read("a/b", "test")


def test_a_folder_offers_its_files(tmp_path):
    write(tmp_path / "train.jsonl.xz", b"")
    write(tmp_path / "validation.jsonl", b"")
    assert find_splits(str(tmp_path)) == {
        "train": str(tmp_path / "train.jsonl.xz"),
        "valid": str(tmp_path / "validation.jsonl"),
    }
    write(tmp_path / "train.jsonl", b"")
    with pytest.raises(UserError, match=r"must hold one file a split, but holds .*train.jsonl and .*train.jsonl.xz"):
        find_splits(str(tmp_path))


def test_a_dataset_out_of_reach_offers_all_splits():
    assert find_splits("a/b") == {"train": "a/b", "valid": "a/b", "test": "a/b"}


def test_a_dataset_offers_the_splits_that_it_has(tmp_path):
    saved, folder = tmp_path / "saved", tmp_path / "folder"
    datasets.DatasetDict({"train": hub_rows("a"), "test": hub_rows("b")}).save_to_disk(str(saved))
    (folder / "data").mkdir(parents=True)
    for split in ("train", "test"):
        hub_rows(split).to_parquet(str(folder / "data" / f"{split}-00000-of-00001.parquet"))
    for path in map(str, (saved, folder)):
        assert find_splits(path) == {"train": path, "test": path}


def test_a_dataset_without_our_splits_is_refused(tmp_path):
    datasets.DatasetDict({"full": hub_rows("a")}).save_to_disk(str(tmp_path / "saved"))
    with pytest.raises(UserError, match="saved must have a split named train, validation or test, but has none"):
        find_splits(str(tmp_path / "saved"))


def test_null_is_empty(tmp_path):
    rows = [{"article": "text", "abstract": None}, {"article": None, "abstract": "x"}, RECORDS[0] | {"id": None}]
    path = write(tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert [document.target for document in read(path, skip_empty=True)] == ["first"]
    with pytest.raises(UserError, match=r"line 1: the field 'abstract' must be text, but is null\."):
        read(path)


def test_a_folder_that_the_library_datasets_would_read_says_so_without_it(tmp_path, monkeypatch):
    write(tmp_path / "mine.jsonl", b"{}")
    assert find_splits(str(tmp_path)) == {"train": str(tmp_path)}
    monkeypatch.setattr(readers, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="holds no such file; and the library datasets, which reads other folders, is"):
        find_splits(str(tmp_path))


def test_the_folder_of_the_release_offers_its_files(tmp_path):
    for split in ("train", "val", "test"):
        write(tmp_path / f"{split}.txt", b"")
    assert find_splits(str(tmp_path)) == {
        "train": str(tmp_path / "train.txt"),
        "valid": str(tmp_path / "val.txt"),
        "test": str(tmp_path / "test.txt"),
    }


def test_a_folder_without_data_is_told_which_files_are_expected(tmp_path):
    write(tmp_path / "paper.pdf", b"")
    with pytest.raises(
        UserError, match=r"must hold files named train, val or valid, and test, .* holds no such file\.$"
    ):
        find_splits(str(tmp_path))


def test_a_folder_of_other_files_is_told_which_files_are_expected(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "papers"
    folder.mkdir()
    write(folder / "notes.md", b"x")
    with pytest.raises(UserError, match=r"papers must hold files named train, val or valid, and test, "):
        read(folder, "train")


def test_a_single_file_offers_no_splits(tmp_path):
    path = write(tmp_path / "all.jsonl", LINES)
    with pytest.raises(UserError, match=r"INPUT must be a folder or a dataset, but is the file .*all\.jsonl; give it"):
        find_splits(str(path))


def test_what_the_system_refuses_to_read_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "x.jsonl", LINES)

    def refuse(self, *args):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError, match=r"x\.jsonl cannot be read: Permission denied\.$"):
        read(path)


def test_a_line_that_unpacks_to_more_than_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "LINE_LIMIT", 1)
    path = write(tmp_path / "x.jsonl.xz", lzma.compress(LINES + bytes(3 * 2**20)))
    assert path.stat().st_size < 2000
    with pytest.raises(UserError, match=r"x\.jsonl\.xz, line 3 must hold at most 1 MiB, but holds more\.$"):
        read(path)


def test_a_parquet_cell_beyond_the_limit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "LINE_LIMIT", 1)
    path = tmp_path / "x.parquet"
    huge = [{"article": "x" * (3 * 2**20), "abstract": "y"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(huge), path, compression="zstd")
    assert path.stat().st_size < 20_000
    with pytest.raises(UserError, match=r"x\.parquet, row group 1, by row, must hold at most 1 MiB, but holds 3\.0\.$"):
        read(path)


def test_rows_of_large_parquet_cells_are_read_one_at_a_time(tmp_path, monkeypatch):
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


def test_a_pipe_or_a_device_is_no_input(tmp_path):
    os.mkfifo(tmp_path / "train.jsonl")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    for name, sentence in (
        ("train.jsonl", "must be a regular file, but is a pipe"),
        ("zero.txt", "must be a regular file, but is a device"),
        ("loop.txt", "cannot be read: Too many levels of symbolic links"),
    ):
        with pytest.raises(UserError, match=f"{name} {sentence}"):
            read(tmp_path / name)


def test_repeated_ids_are_numbered_on_demand_and_unique_then(tmp_path):
    ids = ["a", "a", "a#2", "a", "b", "a#2"]
    lines = "".join(json.dumps({"id": name, "article": "x", "abstract": "y"}) + "\n" for name in ids)
    path = write(tmp_path / "x.jsonl", lines.encode())
    found = [document.id for document in read(path, number_repeated_ids=True)]
    assert found == ["a", "a#2", "a#2#2", "a#3", "b", "a#2#3"]
    with pytest.raises(UserError, match=r"line 2: the id 'a' came before; .*--number-repeated-ids numbers them\.$"):
        read(path)


def test_a_pipe_in_a_folder_is_told_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "train.jsonl")
    write(tmp_path / "notes.md", b"x")
    assert find_splits(str(tmp_path)) == {"train": str(tmp_path / "train.jsonl")}
    with pytest.raises(UserError, match=r"train\.jsonl must be a regular file, but is a pipe\.$"):
        read(tmp_path / "train.jsonl")


def test_the_ending_of_a_name_may_be_in_capitals(tmp_path: Path) -> None:
    line = json.dumps({"id": "a", "article": "Some text.", "abstract": "Short."}) + "\n"
    (tmp_path / "train.JSONL").write_text(line)
    (tmp_path / "Val.Jsonl.GZ").write_bytes(gzip.compress(line.encode()))
    (tmp_path / "val.Jsonl.GZ").write_bytes(gzip.compress(line.encode()))
    found = find_splits(str(tmp_path))
    assert found == {"train": str(tmp_path / "train.JSONL"), "valid": str(tmp_path / "val.Jsonl.GZ")}
    assert [document.id for name in found.values() for document in Corpus(name)] == ["a", "a"]

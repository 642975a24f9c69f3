"""Every known corpus is read from a small copy of its shape."""

import gzip
import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest
from corpus_shapes import (
    SHAPES,
    lines,
    meeting,
    packed,
    papers,
    papers_of_release,
    parquet,
    patents,
    summscreen_of_release,
    tables,
    texts,
    write,
)
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data.corpora.reading import configuration, read_corpus
from pyramidions.data.corpora.release import release_files
from pyramidions.data.corpora.table import KNOWN
from pyramidions.data.readers import Document


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def read(name: str, release: Path, config: str | None = None) -> dict[str, list[Document]]:
    corpus = KNOWN[name]
    reading = read_corpus(corpus, configuration(corpus, config), release)
    return {split: list(reading.documents(split)) for split in reading.splits}


def of(split: str, count: int = 2, start: int = 1) -> list[Document]:
    return [Document(str(number), *pair) for number, pair in enumerate(texts(split, count), start)]


def shape(name: str, tmp_path: Path) -> Path:
    SHAPES[name](tmp_path / "release")
    return tmp_path / "release"


@pytest.mark.parametrize("name", ["arxiv", "pubmed", "govreport", "booksum", "booksum_books"])
def test_the_tables_of_the_hub_are_read(name: str, tmp_path: Path) -> None:
    release = shape(name, tmp_path)
    if name == "govreport":
        files = [f"  - split: {split}\n    path: document/{split}-*" for split in ("train", "validation", "test")]
        card = ["---", "configs:", "- config_name: document", "  data_files:", *files, "---"]
        (release / "README.md").write_text("\n".join(card))
    assert read(name, release) == {"train": of("train"), "valid": of("validation"), "test": of("test")}


DIALOGUE = Document("7", "#Person1#: Is this validation?\r\n#Person2#: Yes.", "Short.")
INTERVIEW = "ALEX COHEN, host: This is Day to Day.\nALEX COHEN, host: Now validation."


@pytest.mark.parametrize(
    ("name", "document", "number"),
    [
        ("samsum", DIALOGUE, 2),
        ("dialogsum", DIALOGUE, 2),
        ("xsum", DIALOGUE, 2),
        ("cnn_dailymail", Document("0001d1validation", "News of 3.0.0 validation.", "News .\nMore ."), 1),
        ("newsroom", Document("1", "News of dev.", "News."), 1),
        ("mediasum", Document("NPR-validation", INTERVIEW, "They talk."), 1),
        ("ami", Document("AMI-dev-0", "PM B: Good day .\nPM A: dev-0 ?", "They met .\nTwice ."), 2),
        ("icsi", Document("ICSI-dev-0", "Grad C: Good day .\nGrad A: dev-0 ?", "They met .\nTwice ."), 2),
    ],
)
def test_a_corpus_is_read_from_a_copy_of_its_shape(name: str, document: Document, number: int, tmp_path: Path) -> None:
    found = read(name, shape(name, tmp_path))
    assert {split: len(documents) for split, documents in found.items()} == dict.fromkeys(found, number)
    assert list(found) == ["train", "valid", "test"] and found["valid"][0] == document


def test_an_archive_that_holds_a_file_twice_and_two_files_for_a_split_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as archive, warnings.catch_warnings(action="ignore"):
        for _ in range(2):
            archive.writestr("train.txt", "{}")
    with refused("release.zip/train.txt"):
        release_files(tmp_path / "release.zip")
    for place in ("a", "b"):
        write(tmp_path / "release" / place / "train.jsonl", lines([meeting("train")]))
    with refused("b/train.jsonl"):
        read("qmsum", tmp_path / "release")


@pytest.mark.parametrize("archived", [False, True])
def test_papers_of_the_release_have_names_and_sections(archived: bool, tmp_path: Path) -> None:
    release = tmp_path / "release"
    papers_of_release(release)
    if archived:
        files = {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*.txt")}
        release = tmp_path / "arxiv-dataset.zip"
        packed(release, files)
    reading = read_corpus(KNOWN["arxiv"], "document", release)
    assert list(reading.documents("valid")) == [Document("val-1", "the long val text .", "short val .")]
    (document,) = reading.documents("train", sections=True)
    assert document.source == "introduction\nthe long train text ."


def test_papers_of_another_corpus_beside_them_are_not_mixed_in(tmp_path: Path) -> None:
    papers_of_release(tmp_path)
    (tmp_path / "arxiv-dataset").rename(tmp_path / "pubmed-dataset")
    papers_of_release(tmp_path)
    write(tmp_path / "arxiv-dataset" / "val.txt", b"")
    assert [document.id for document in read_corpus(KNOWN["pubmed"], "document", tmp_path).documents("valid")] == [
        "val-1"
    ]


def test_a_release_may_be_hidden_and_be_named_by_a_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SHAPES["qmsum"](tmp_path / ".hidden")
    (tmp_path / ".hidden" / ".git").mkdir()
    write(tmp_path / ".hidden" / ".git" / "ALL" / "jsonl" / "val.jsonl", b"no JSON\n")
    monkeypatch.chdir(tmp_path / ".hidden" / "data")
    assert {split: len(found) for split, found in read("qmsum", Path("..")).items()} == dict.fromkeys(
        ("train", "valid", "test"), 6
    )


@pytest.mark.parametrize("in_folder", [True, False])
def test_bills_that_are_held_out_are_no_longer_train_documents(in_folder: bool, tmp_path: Path) -> None:
    release = shape("billsum", tmp_path)
    if not in_folder:
        # Without a data card, those of California are not mixed in either.
        for path in (release / "data").iterdir():
            path.rename(release / path.name)
    found = read("billsum", release)
    assert found["test"] == of("test", 200)
    assert sorted([*found["train"], *found["valid"]], key=lambda document: int(document.id)) == of("train", 200)
    # 5% of 200; the hash of the text decides, so that the number is always the same.
    assert len(found["valid"]) == 11
    assert not {document.source for document in found["train"]} & {document.source for document in found["valid"]}


def test_equal_bills_are_on_one_side_in_any_order(tmp_path: Path) -> None:
    before = {document.source for document in read("billsum", shape("billsum", tmp_path))["valid"]}
    rows = [{"text": text, "summary": short, "title": "An act"} for text, short in texts("train", 200)]
    parquet(tmp_path / "other" / "data" / "train-00000-of-00001.parquet", [*reversed(rows), *rows])
    tables(tmp_path / "other", "text", "summary", ("test",))
    again = [document.source for document in read("billsum", tmp_path / "other")["valid"]]
    assert set(again) == before and len(again) == 2 * len(before)


@pytest.mark.parametrize(("config", "kinds"), [(None, "ad"), ("all", "ad"), ("d", "d")])
def test_patents_of_a_kind_or_of_all_are_read_from_the_archives(config: str | None, kinds: str, tmp_path: Path) -> None:
    found = read("bigpatent", shape("bigpatent", tmp_path), config)
    assert list(found) == ["train", "valid", "test"]
    for split, name in (("train", "train"), ("valid", "val"), ("test", "test")):
        expected = [of(f"{name}-{kind}", 1, start)[0] for start, kind in enumerate(kinds, 1)]
        assert found[split] == expected


@pytest.mark.parametrize("inside", ["train/a/part.gz", "a/part.gz", None])
def test_patents_are_read_from_the_folder_of_archives_and_unpacked_as_well(inside: str | None, tmp_path: Path) -> None:
    part = gzip.compress(lines([{"description": "Long.", "abstract": "Short."}]))
    packed(tmp_path / "train.zip", {inside: part}) if inside else write(tmp_path / "train" / "a" / "1.gz", part)
    assert read("bigpatent", tmp_path, "a") == {"train": [Document("1", "Long.", "Short.")]}


def test_a_meeting_gives_a_document_for_each_query_and_a_domain_is_a_release_of_its_own(tmp_path: Path) -> None:
    release = shape("qmsum", tmp_path)
    found = read("qmsum", release)
    transcript = "A: Is this the val meeting ?\nB: Yes ."
    assert found["valid"][:3] == [
        Document("1/1", transcript, "They met in val.", "Summarize the meeting."),
        Document("1/2", transcript, "Yes.", "What did B say?"),
        Document("1/3", transcript, "For money.", "Why?"),
    ]
    assert [document.id for document in found["valid"][3:]] == ["2/1", "2/2", "2/3"]
    assert {split: len(documents) for split, documents in found.items()} == {"train": 6, "valid": 6, "test": 6}
    one = read("qmsum", release / "data" / "Academic")["train"][0].source
    assert one.startswith("A: Is this the academic train meeting")


def test_episodes_of_scrolls_have_no_test_split(tmp_path: Path) -> None:
    for release in (shape("summscreen", tmp_path), tmp_path / "release" / "summ_screen_fd.zip"):
        found = read("summscreen", release)
        assert found == {
            "train": [Document("fd_train", *texts("train")[0])],
            "valid": [Document("fd_validation", *texts("validation")[0])],
        }


@pytest.mark.parametrize("config", ["fd", "tms"])
def test_episodes_of_the_release_get_whole_words(config: str, tmp_path: Path) -> None:
    summscreen_of_release(tmp_path)
    found = read("summscreen", tmp_path, config)
    assert list(found) == ["train", "valid", "test"]
    assert found["valid"] == [Document("dev.json", "transcript of dev\n[ SCENE_BREAK ]", "recap")]


def test_each_aspect_of_a_report_is_a_query(tmp_path: Path) -> None:
    reading = read_corpus(KNOWN["govreport_aspects"], "", shape("govreport_aspects", tmp_path))
    documents = reading.documents("valid")
    report = "We audited.\nBackground\nA valid fund."
    assert list(documents) == [
        Document("GAO-valid/1", report, "Congress asked.\nIt did so in May.", "Why GAO Did This Study"),
        Document("GAO-valid/2", report, "Money is short.", "What GAO Found"),
    ]
    assert documents.skipped == 1  # GAO recommends nothing here


def test_articles_on_an_event_are_documents_of_one_text(tmp_path: Path) -> None:
    found = read("multi_news", shape("multi_news", tmp_path))
    assert list(found) == ["train", "valid", "test"]
    assert found["valid"] == [
        Document("1", "One val. \n End. \n\x1e\n Two.", "\u2013 All val news."),
        Document("2", "Three.", "\u2013 No news."),
    ]


@pytest.mark.parametrize("file", ["src.cleaned", "tgt"])
def test_articles_without_a_summary_each_are_refused(file: str, tmp_path: Path) -> None:
    release = shape("multi_news", tmp_path)
    with (release / "data" / f"test.{file}").open("a") as stream:
        stream.write("More.\n")
    with refused(f"test.{file}"):
        read("multi_news", release)


def test_a_paper_is_read_without_title_and_abstract(tmp_path: Path) -> None:
    release = shape("scisummnet", tmp_path)
    reading = read_corpus(KNOWN["scisummnet"], "", release)
    whole, held = (list(reading.documents(split)) for split in ("train", "valid"))
    assert len(whole) + len(held) == 40 and 0 < len(held) < 6
    first = min([*whole, *held])
    assert first == Document("A00-0001", "Tags of paper 1.\nA < B.\nThe end.", "We tag.\nIt was cited.")
    with_sections = [document.source for document in reading.documents("train", sections=True)]
    assert with_sections[-1].startswith("1 Introduction\nTags of paper") and "\n\n2 End\nThe end." in with_sections[-1]


def test_papers_of_the_shared_task_are_the_same(tmp_path: Path) -> None:
    release = shape("scisummnet", tmp_path)
    expected = read("scisummnet", release)
    for paper in (release / "top1000_complete").iterdir():
        (paper / "Documents_xml").rename(paper / "Reference_XML")
        (paper / "summary" / f"{paper.name}.gold.txt").rename(paper / "summary" / f"{paper.name}.scisummnet_human.txt")
    (release / "Task2").mkdir()
    (release / "top1000_complete").rename(release / "Task2" / "From-ScisummNet-2019")
    assert read("scisummnet", release) == expected


BOMB = b'<?xml version="1.0"?>\n<!DOCTYPE p [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>\n<PAPER>&b;</PAPER>'


@pytest.mark.parametrize("content", [b"<PAPER>", BOMB, b'<?xml version="1.0" encoding="none"?><PAPER/>', None])
def test_a_paper_without_summary_or_that_is_no_xml_is_named(content: bytes | None, tmp_path: Path) -> None:
    release = shape("scisummnet", tmp_path)
    paper = release / "top1000_complete" / "A00-0001"
    if content is None:
        (paper / "summary" / "A00-0001.gold.txt").unlink()
    else:
        write(paper / "Documents_xml" / "A00-0001.xml", content)
    with refused("A00-0001.xml"):
        read("scisummnet", release)


AMI, QMSUM = "meeting_summarization/AMI_proprec/train/split_0.jsonl", "data/ALL/jsonl/train.jsonl"


@pytest.mark.parametrize(
    ("name", "file", "change", "field"),
    [
        ("ami", AMI, {"meeting": [{"speaker": "A", "role": "PM", "utt": "Hi."}]}, "meeting"),
        ("ami", AMI, {"meeting": [{"speaker": "A", "role": "PM", "utt": {"word": "Hi."}}]}, "meeting"),
        ("mediasum", "train.json", {"speaker": "AB", "utt": "Hi"}, "utt"),
        ("mediasum", "train.json", {"utt": ["Hi."]}, "utt"),
        (
            "govreport_aspects",
            "data/gao_train.jsonl",
            {"highlight": [{"section_title": None, "paragraphs": []}]},
            "highlight",
        ),
        ("qmsum", QMSUM, {"meeting_transcripts": None}, "meeting_transcripts"),
        ("qmsum", QMSUM, {"specific_query_list": [{"query": "Why?"}]}, "specific_query_list"),
        ("qmsum", QMSUM, {"general_query_list": ...}, "general_query_list"),
    ],
)
def test_a_record_of_another_shape_is_refused(
    name: str, file: str, change: dict[str, object], field: str, tmp_path: Path
) -> None:
    release = shape(name, tmp_path)
    path = release / file
    packed_path = path.with_name(f"{path.name}.gz")
    content = gzip.decompress(packed_path.read_bytes()) if packed_path.exists() else path.read_bytes()
    row = {**json.loads(content.splitlines()[0]), **change}
    packed_path.unlink(missing_ok=True)
    write(path, lines([{key: value for key, value in row.items() if value is not ...}]))
    with refused(f"'{field}'"):
        read(name, release)


def test_empty_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    # An empty cell of a table is null.
    (tmp_path / "train.csv").write_text('chapter,summary_text\n"Long,",Short.\n,Short.\nLong.,\n" ",Short.\n')
    documents = read_corpus(KNOWN["booksum"], "", tmp_path).documents("train")
    assert list(documents) == [Document("1", "Long,", "Short.")] and documents.skipped == 3


def test_tables_in_an_archive_and_those_of_other_columns_are_refused(tmp_path: Path) -> None:
    table = b"chapter,summary_text\nLong.,Short.\n"
    packed(tmp_path / "booksum.zip", {"train.csv": table})
    write(tmp_path / "folder" / "train.csv.gz", gzip.compress(table))
    for release in (tmp_path / "booksum.zip", tmp_path / "folder"):
        with refused("train.csv"):
            read_corpus(KNOWN["booksum"], "", release)
    tables(tmp_path / "other", "text", "summary", ("train", "validation", "test"), "document")
    with refused("'report'"):
        read("govreport", tmp_path / "other")


@pytest.mark.parametrize(("copied", "hub"), [(papers, "ccdv/arxiv-summarization"), (papers_of_release, None)])
def test_only_a_copy_of_what_is_on_the_hub_is_said_to_be_of_the_hub(
    copied: Callable[[Path], None], hub: str | None, tmp_path: Path
) -> None:
    copied(tmp_path)
    about = read_corpus(KNOWN["arxiv"], "document", tmp_path).about()
    assert about == {"name": "arxiv", "config": "document", "hub": hub, "licence": "none stated"}


def test_a_large_release_is_not_held_in_memory(tmp_path: Path) -> None:
    # Each document is read when it is asked for: a later one may be invalid.
    write(tmp_path / "train.jsonl", lines([meeting("train")]) + b"no JSON\n")
    documents = iter(read_corpus(KNOWN["qmsum"], "", tmp_path).documents("train"))
    assert [next(documents).id for _ in range(3)] == ["1/1", "1/2", "1/3"]
    with pytest.raises(UserError):
        next(documents)


def test_progress_ends_at_the_size_of_all_files(tmp_path: Path) -> None:
    patents(tmp_path / "train.zip", "train")
    documents = read_corpus(KNOWN["bigpatent"], "all", tmp_path).documents("train")
    places = [record.progress for _, record in documents.with_records()]
    assert places == sorted(places) and (places[-1], "B") == documents.size()

"""Known corpora as they lie on the hub and in their releases, with a few made-up documents."""

import csv
import gzip
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

Rows = Sequence[Mapping[str, Any]]


def texts(split: str, count: int = 2) -> list[tuple[str, str]]:
    """Return documents with their summaries."""
    return [(f"The long {split} text {number}.", f"Short {split} {number}.") for number in range(1, count + 1)]


def lines(rows: Rows) -> bytes:
    """Return JSON lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def write(path: Path, data: bytes) -> None:
    """Write a file, and the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def parquet(path: Path, rows: Rows) -> None:
    """Write a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)


def packed(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a zip archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def tables(folder: Path, source: str, target: str, splits: Sequence[str], below: str = "data", count: int = 2) -> None:
    """Write the tables of a dataset on the hub, a file for each split."""
    for split in splits:
        rows = [{source: text, target: summary} for text, summary in texts(split, count)]
        parquet(folder / below / f"{split}-00000-of-00001.parquet", rows)


def papers(folder: Path) -> None:
    """Write papers as on the hub, in the folder of a configuration."""
    tables(folder, "article", "abstract", ("train", "validation", "test"), "document")


def papers_of_release(folder: Path) -> None:
    """Write papers as in the release, with sections."""
    for split in ("train", "val", "test"):
        row = {
            "article_id": f"{split}-1",
            "article_text": [f"the long {split} text ."],
            "abstract_text": [f"<S> short {split} . </S>"],
            "section_names": ["introduction"],
            "sections": [[f"the long {split} text ."]],
        }
        write(folder / "arxiv-dataset" / f"{split}.txt", lines([row]))
    write(folder / "arxiv-dataset" / "vocab", b"the 9\n")


def govreport(folder: Path) -> None:
    """Write reports as on the hub."""
    tables(folder, "report", "summary", ("train", "validation", "test"), "document")


def billsum(folder: Path) -> None:
    """Write bills as on the hub, with those of California."""
    tables(folder, "text", "summary", ("train", "test", "ca_test"), count=200)


def patents(path: Path, split: str) -> None:
    """Write the archive of a split, with two kinds of patents."""
    members = {}
    for kind in "ad":
        rows = [
            {"publication_number": f"US-{kind}", "description": text, "abstract": short, "application_number": 7}
            for text, short in texts(f"{split}-{kind}", 1)
        ]
        members[f"{split}/{kind}/part_0.gz"] = gzip.compress(lines(rows), mtime=0)
        members[f"__MACOSX/{split}/{kind}/._part_0.gz"] = b"no patents"
    packed(path, members)


def bigpatent(folder: Path) -> None:
    """Write patents as on the hub, in both versions."""
    for split in ("train", "val", "test"):
        patents(folder / "data" / "2.1.2" / f"{split}.zip", split)
        packed(folder / "data" / "1.0.0" / f"{split}.zip", {f"{split}/a/old.gz": b"of another version"})


def meeting(split: str) -> dict[str, Any]:
    """Return a meeting with three queries."""
    return {
        "topic_list": [{"topic": "the budget", "relevant_text_span": [["0", "1"]]}],
        "general_query_list": [{"query": "Summarize the meeting.", "answer": f"They met in {split}."}],
        "specific_query_list": [
            {"query": "What did B say?", "answer": "Yes.", "relevant_text_span": [["1", "1"]]},
            {"query": "Why?", "answer": "For money.", "relevant_text_span": [["0", "1"]]},
        ],
        "meeting_transcripts": [
            {"speaker": "A", "content": f"Is this the {split} meeting ?"},
            {"speaker": "B", "content": "Yes ."},
        ],
    }


def qmsum(folder: Path) -> None:
    """Write the repository of the release: all meetings, and those of a domain."""
    for split in ("train", "val", "test"):
        write(folder / "data" / "ALL" / "jsonl" / f"{split}.jsonl", lines([meeting(split), meeting(f"second {split}")]))
        write(folder / "data" / "Academic" / "jsonl" / f"{split}.jsonl", lines([meeting(f"academic {split}")]))
        write(folder / "data" / "ALL" / split / "Bdb001.json", b'{"meeting_transcripts": []}')


def booksum(folder: Path) -> None:
    """Write chapters as on the hub; the rows have line breaks in quotes."""
    for file, split in (("train", "train"), ("dev", "validation"), ("test", "test")):
        (folder / f"{file}.csv").parent.mkdir(parents=True, exist_ok=True)
        with (folder / f"{file}.csv").open("w", newline="") as stream:
            table = csv.DictWriter(stream, ["bid", "chapter_path", "summary_path", "chapter", "summary_text"])
            table.writeheader()
            for text, short in texts(split):
                table.writerow(
                    {"bid": 7, "chapter_path": "a.txt", "summary_path": "b.txt", "chapter": text, "summary_text": short}
                )


def summscreen(folder: Path) -> None:
    """Write episodes as in SCROLLS, whose test split has no summaries, beside another task of it."""
    members = {}
    for split in ("train", "validation", "test"):
        rows = [
            {"id": f"fd_{split}", "pid": "p", "input": text, "output": None if split == "test" else short}
            for text, short in texts(split, 1)
        ]
        members[f"summ_screen_fd/{split}.jsonl"] = lines(rows)
    packed(folder / "summ_screen_fd.zip", members)
    packed(folder / "qmsum.zip", {"qmsum/train.jsonl": lines([{"id": "other"}])})


def summscreen_of_release(folder: Path) -> None:
    """Write episodes as in the release, cut into subwords, and anonymized ones beside them."""
    for split in ("train", "dev", "test"):
        row = {
            "filename": f"{split}.json",
            "Transcript": [f"tran@@ script of {split}", "[ SCENE@@ _BREAK ]"],
            "Recap": ["re@@ cap"],
        }
        for place, source in (("ForeverDreaming", "fd"), ("TVMegaSite", "tms")):
            write(folder / place / f"{source}_{split}.json", lines([row]))
            write(folder / place / f"{source}_anonymize_{split}.json", lines([row]))


def govreport_aspects(folder: Path) -> None:
    """Write reports of GAO as in the authors' dataset, with sections in sections, and one of CRS beside them."""
    for split in ("train", "valid", "test"):
        inner = {"section_title": "Background", "paragraphs": [f"A {split}  fund."], "subsections": []}
        row = {
            "id": f"GAO-{split}",
            "title": "Funds",
            "report": [{"section_title": "Letter", "paragraphs": ["We audited."], "subsections": [inner]}],
            "highlight": [
                {"section_title": "Why GAO Did This Study ", "paragraphs": ["Congress asked.", "It did so in May."]},
                {"section_title": "What GAO Found", "paragraphs": ["Money is short."]},
                {"section_title": "What GAO Recommends", "paragraphs": []},
            ],
        }
        write(folder / "data" / f"gao_{split}.jsonl", lines([row]))
        write(folder / "data" / f"crs_{split}.jsonl", lines([{"id": "R1", "reports": {}, "summary": []}]))


def booksum_books(folder: Path) -> None:
    """Write books as on the hub."""
    tables(folder, "book", "summary", ("train", "validation", "test"))


def hmnet(folder: Path) -> None:
    """Write the meetings of AMI and ICSI as in the repository of HMNet, a file each, with tags of words."""
    for name, role, speaker in (("AMI", "PM", "B"), ("ICSI", "Grad", "C")):
        for split in ("train", "dev", "test"):
            for number in (0, 1):
                turn = {"speaker": speaker, "role": role, "utt": {"word": ["Good", "day", "."], "pos_id": [1, 2, 3]}}
                other = {"speaker": "A", "role": role, "utt": {"word": [f"{split}-{number}", "?"], "pos_id": [1, 3]}}
                row = {"id": f"{name}-{split}-{number}", "meeting": [turn, other], "summary": ["They met .", "Twice ."]}
                path = folder / "meeting_summarization" / f"{name}_proprec" / split / f"split_{number}.jsonl.gz"
                write(path, gzip.compress(lines([row]), mtime=0))


def mediasum(folder: Path) -> None:
    """Write interviews as on the hub."""
    for split in ("train", "validation", "test"):
        row = {"id": f"NPR-{split}", "summary": "They talk.", "title": "News", "date": "2008-06-10"}
        turns = {"speaker": ["ALEX COHEN, host", "ALEX COHEN, host"], "utt": ["This is  Day\nto Day.", f"Now {split}."]}
        write(folder / f"{split}.json", lines([row | turns]))


def dialogues(folder: Path) -> None:
    """Write dialogues as on the hub, with further files and columns; their rows have line breaks in quotes."""
    for split in ("train", "validation", "test", "holdout"):
        texts = [f"#Person1#: Is this {split}?\r\n#Person2#: Yes.", "A: Hi"]
        rows = [f'{number},"{text}",Short.,greeting' for number, text in enumerate(texts, 7)]
        write(folder / f"{split}.csv", "\n".join(["id,dialogue,summary,topic", *rows, ""]).encode())


def cnn_dailymail(folder: Path) -> None:
    """Write news as on the hub, in two versions."""
    for version in ("1.0.0", "3.0.0"):
        for split in ("train", "validation", "test"):
            row = {"article": f"News of {version} {split}.", "highlights": "News .\nMore .", "id": f"0001d1{split}"}
            parquet(folder / version / f"{split}-00000-of-00001.parquet", [row])


def newsroom(folder: Path) -> None:
    """Write news as in the release, with their density."""
    for split in ("train", "dev", "test"):
        row = {"text": f"News of {split}.", "summary": "News.", "title": "New", "density": 2.5, "density_bin": "mixed"}
        write(folder / "release" / f"{split}.jsonl.gz", gzip.compress(lines([row])))


def multi_news(folder: Path) -> None:
    """Write news as on the hub: articles on an event in a line, and their summary in a line of another file."""
    for split in ("train", "val", "test"):
        write(folder / "data" / f"{split}.src.cleaned", f"One {split}. NEWLINE_CHAR End. ||||| Two.\nThree.\n".encode())
        write(folder / "data" / f"{split}.tgt", f"\u2013 All {split} news.\n\u2013 No news.\n".encode())


def scisummnet(folder: Path) -> None:
    """Write papers as in the release, each with a folder of its own."""
    for number in range(1, 41):
        name = f"A00-{number:04}"
        paper = f"""<PAPER>
  <S sid="0">Parsing &amp; Tagging</S>
  <ABSTRACT><S sid="1" ssid="1">We tag.</S></ABSTRACT>
  <SECTION title="1 Introduction" number="1">
    <S sid="2" ssid="1">Tags of <i>paper</i> {number}.</S><S sid="3" ssid="2" /><S sid="4" ssid="3">A &lt; B.</S>
  </SECTION>
  <SECTION title="2 End" number="2"><S sid="5" ssid="1">The end.</S></SECTION>
</PAPER>"""
        write(folder / "top1000_complete" / name / "Documents_xml" / f"{name}.xml", paper.encode())
        write(folder / "top1000_complete" / name / "citing_sentences_annotated.json", b"[]")
        summary = "Parsing And Tagging\nWe tag.\nIt was cited.\n"
        write(folder / "top1000_complete" / name / "summary" / f"{name}.gold.txt", summary.encode())


SHAPES: dict[str, Callable[[Path], None]] = {
    "arxiv": papers,
    "pubmed": papers,
    "govreport": govreport,
    "billsum": billsum,
    "bigpatent": bigpatent,
    "qmsum": qmsum,
    "booksum": booksum,
    "summscreen": summscreen,
    "govreport_aspects": govreport_aspects,
    "booksum_books": booksum_books,
    "ami": hmnet,
    "icsi": hmnet,
    "mediasum": mediasum,
    "samsum": dialogues,
    "dialogsum": dialogues,
    "cnn_dailymail": cnn_dailymail,
    "xsum": dialogues,
    "newsroom": newsroom,
    "multi_news": multi_news,
    "scisummnet": scisummnet,
}

"""Known corpora as they lie on the hub and in their releases, with a few made-up documents.

Most are described in corpus_shapes.json: the files of each split, whose names say what they hold.
"""

import gzip
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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


def packed_content(name: str, content: Any) -> bytes:
    """Return a text, or rows as JSON lines; packed if the name says so."""
    data = content.encode() if isinstance(content, str) else lines(content)
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else data


def described(corpus: str, folder: Path) -> None:
    """Write a corpus as corpus_shapes.json describes it; "{split}" stands for the name of a split."""
    for part in DESCRIBED[corpus]:
        for split in part["splits"]:
            files = json.loads(json.dumps(part["files"]).replace("{split}", split))
            for name, content in files.items():
                if name.endswith(".parquet"):
                    parquet(folder / name, content)
                elif name.endswith(".zip"):
                    packed(folder / name, {member: packed_content(member, each) for member, each in content.items()})
                else:
                    write(folder / name, packed_content(name, content))


DESCRIBED = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
papers, papers_of_release = (partial(described, name) for name in ("papers", "papers of the release"))
summscreen_of_release = partial(described, "summscreen of the release")


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


_OWN = (
    *("govreport", "booksum", "summscreen", "govreport_aspects", "booksum_books", "mediasum", "cnn_dailymail"),
    *("newsroom", "multi_news"),
)
SHAPES: dict[str, Callable[[Path], None]] = {
    **{name: partial(described, name) for name in _OWN},
    **dict.fromkeys(("arxiv", "pubmed"), papers),
    **dict.fromkeys(("ami", "icsi"), partial(described, "meetings")),
    **dict.fromkeys(("samsum", "dialogsum", "xsum"), partial(described, "dialogues")),
    "billsum": billsum,
    "bigpatent": bigpatent,
    "qmsum": qmsum,
    "scisummnet": scisummnet,
}

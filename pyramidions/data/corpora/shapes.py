"""What makes documents of the records and files of corpora; `corpora.toml` names these functions."""

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import count, zip_longest
from typing import Any

from lxml import etree

from pyramidions.base.arguments import fits
from pyramidions.base.errors import UserError
from pyramidions.documents.record_fields import RELEASE, SECTION_FIELDS
from pyramidions.documents.records import DAMAGE, LinesFile, Record, Records
from pyramidions.documents.xml_tree import xml_tree
from pyramidions.files.bounded import LINE_LIMIT, MEBIBYTE, at_most
from pyramidions.files.lines import decoded
from pyramidions.text.several_documents import DOCUMENT_END

#: A file of documents and that of their summaries.
Pair = tuple[LinesFile, LinesFile]
#: Yields each value of a pair of files with its place, and the bytes of the first that were read so far.
ReadPair = Callable[[LinesFile, LinesFile], Iterator[tuple[dict[str, Any], str, int]]]


# Dialogues


def questions_of_meeting(record: Record) -> Iterator[Record]:
    """Yield a record for each query about a meeting of QMSum, general ones first, named MEETING/1, MEETING/2 ….

    The source is the whole meeting, a line for each turn: `speaker: content`. Meetings have numbers, from 1: their
    records have no names.
    """
    turns = _pairs(record, "meeting_transcripts", "speaker", "content")
    lists = ("general_query_list", "specific_query_list")
    queries = [pair for column in lists for pair in _pairs(record, column, "query", "answer")]
    meeting = "\n".join(f"{speaker}: {content}" for speaker, content in turns)
    for number, (query, answer) in enumerate(queries, 1):
        value = {"id": f"{record.number}/{number}", "source": meeting, "target": answer, "query": query}
        yield record._replace(value=value, place=f"{record.place}, query {number}")


def _pairs(record: Record, column: str, *names: str) -> list[tuple[Any, ...]]:
    found = record.value[column]
    items = found if isinstance(found, list) else [None]
    pairs = [tuple(item.get(name) if isinstance(item, dict) else None for name in names) for item in items]
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise UserError(
            f"{record.place}: the field {column!r} must be a list of objects with texts under "
            f"{' and '.join(map(repr, names))}."
        )
    return pairs


def turns_of_meeting(record: Record) -> Iterator[Record]:
    """Yield the record of a meeting of AMI or ICSI, as in HMNet, a line for each turn: `role speaker: words`."""
    try:
        turns = [(turn["role"], turn["speaker"], turn["utt"]["word"]) for turn in record.value["meeting"]]
        if not all(fits(words, list[str]) for _, _, words in turns):
            raise TypeError
    except (KeyError, TypeError):
        raise UserError(
            f"{record.place}: the field 'meeting' must be a list of turns with `role`, `speaker` and, in `utt`, a list "
            "`word`."
        ) from None
    meeting = "\n".join(f"{role} {speaker}: {' '.join(words)}" for role, speaker, words in turns)
    yield record._replace(value=record.value | {"meeting": meeting})


def turns_of_interview(record: Record) -> Iterator[Record]:
    """Yield the record of an interview of MediaSum, a line for each turn: `speaker: text`."""
    speakers, texts = record.value["speaker"], record.value["utt"]
    if not (fits(speakers, list[str]) and fits(texts, list[str]) and len(speakers) == len(texts)):
        raise UserError(
            f"{record.place}: the fields 'speaker' and 'utt' must be lists of texts, and have as many entries as each "
            "other."
        )
    turns = [f"{speaker}: {_on_one_line(text)}" for speaker, text in zip(speakers, texts, strict=True)]
    yield record._replace(value=record.value | {"utt": "\n".join(turns)})


def join_subwords(record: Record) -> Iterator[Record]:
    """Yield the record of an episode of SummScreen with whole words: the release cut them into `sub@@ words`."""
    yield record._replace(value={name: _whole(value) for name, value in record.value.items()})


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value.replace("@@ ", "") if isinstance(value, str) else value


# Reports


def aspects_of_report(record: Record) -> Iterator[Record]:
    """Yield a record for each part of the highlights of a GAO report, named REPORT/1, REPORT/2 and so on.

    Its query is the title of the part, such as "What GAO Found"; its source is the whole report, a line for each title
    and paragraph.
    """
    value = record.value
    try:
        source = "\n".join(line for section in value["report"] for line in _lines_of_section(section))
        highlights = [(part["section_title"], part["paragraphs"]) for part in value["highlight"]]
        parts = [(_on_one_line(title), list(map(_on_one_line, paragraphs))) for title, paragraphs in highlights]
    except (AttributeError, KeyError, TypeError):
        raise UserError(
            f"{record.place}: the fields 'report' and 'highlight' must be lists of sections with a `section_title` and "
            "`paragraphs`."
        ) from None
    for number, (title, paragraphs) in enumerate(parts, 1):
        aspect = {"id": f"{value['id']}/{number}", "source": source, "target": paragraphs, "query": title}
        yield record._replace(value=aspect, place=f"{record.place}, aspect {number}")


def _lines_of_section(section: dict[str, Any]) -> Iterator[str]:
    title = _on_one_line(section["section_title"])
    # The letter holds the whole report.
    if title != "Letter":
        yield title
    yield from map(_on_one_line, section["paragraphs"])
    for inner in section["subsections"]:
        yield from _lines_of_section(inner)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


# Documents and summaries in files of their own


def open_pairs(pairs: Sequence[Pair], read: ReadPair) -> Records:
    """Look at pairs of files, which are read as if they were one."""

    def records() -> Iterator[Record]:
        numbers, before = count(1), 0
        for document, summary in pairs:
            for value, place, done in read(document, summary):
                yield Record(value, next(numbers), place, before + done)
            before += document.size

    return Records(sum(document.size for document, _ in pairs), "B", records)


def articles_of_news(document: LinesFile, summary: LinesFile) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Yield the records of Multi-News: a line each in both files. Articles on one event are documents of one text."""
    for number, (source, target) in enumerate(zip_longest(_lines(document), _lines(summary)), 1):
        place = f"{document.name}, line {number}"
        if source is None or target is None:
            longer, shorter = (summary, document) if source is None else (document, summary)
            raise UserError(f"{longer.name} must have as many lines as {shorter.name}, but has more.")
        (article, done), (text, _) = source, target
        article = article.replace("NEWLINE_CHAR", "\n").replace("|||||", DOCUMENT_END)
        yield {"document": article, "summary": text.replace("NEWLINE_CHAR", "\n")}, place, done


def paper_of_xml(document: LinesFile, summary: LinesFile) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Yield the record of a paper of ScisummNet, without its abstract; the title, above its summary, is left out."""
    sections: list[list[str]] = [[]]
    names = [""]
    for part in _tree(document):
        found = ("".join(each.itertext()) for each in part.iter("S") if each.get("sid") != "0")
        sentences = [text for text in found if text]
        if part.tag == "SECTION":
            names.append(part.get("title", ""))
            sections.append(sentences)
        elif part.tag == "S":
            sections[-1] += sentences
    whole = [sentence for section in sections for sentence in section]
    target = [line for line, _ in _lines(summary)][1:]
    name = document.name.rpartition("/")[2].partition(".")[0]
    fields = (RELEASE.id, RELEASE.source, RELEASE.target, *SECTION_FIELDS)
    yield dict(zip(map(str, fields), (name, whole, target, sections, names), strict=True)), document.name, document.size


def _tree(file: LinesFile) -> etree._Element:
    content, size = [], 0
    for line, _ in _raw_lines(file):
        size += len(line)
        if size > LINE_LIMIT * MEBIBYTE:
            raise UserError(f"{file.name} must have at most {LINE_LIMIT} MiB, but has more.")
        content.append(line)
    return xml_tree(BytesIO(b"".join(content)), file.name)


def _lines(file: LinesFile) -> Iterator[tuple[str, int]]:
    """Yield the lines of a text without their ends, each with the bytes that were read so far."""
    for number, (line, done) in enumerate(_raw_lines(file), 1):
        yield decoded(line, f"{file.name}, line {number}").strip(), done


def _raw_lines(file: LinesFile) -> Iterator[tuple[bytes, int]]:
    try:
        with file.open() as raw:
            lines = file.unpack(raw)
            for number in count(1):
                if not (line := at_most(lines.readline, LINE_LIMIT, f"{file.name}, line {number}")):
                    return
                yield line, raw.tell()
    except DAMAGE as damage:
        raise UserError(f"{file.name} is damaged ({damage}).") from None

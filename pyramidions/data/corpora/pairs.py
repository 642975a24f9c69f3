"""Records of corpora whose documents and summaries lie in files of their own."""

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import count, zip_longest
from typing import Any

from lxml import etree

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
    """Yield the records of Multi-News: a line each in both files. Articles on one event are documents of one text.

    Raises:
        UserError: one of the files has more lines, or cannot be read.
    """
    for number, (source, target) in enumerate(zip_longest(_lines(document), _lines(summary)), 1):
        place = f"{document.name}, line {number}"
        if source is None or target is None:
            longer, shorter = (summary, document) if source is None else (document, summary)
            raise UserError(f"{longer.name} must have as many lines as {shorter.name}, but has more.")
        (article, done), (text, _) = source, target
        article = article.replace("NEWLINE_CHAR", "\n").replace("|||||", DOCUMENT_END)
        yield {"document": article, "summary": text.replace("NEWLINE_CHAR", "\n")}, place, done


def paper_of_xml(document: LinesFile, summary: LinesFile) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Yield the record of a paper of ScisummNet, without its abstract; the title, above its summary, is left out.

    Raises:
        UserError: the paper is no XML with sections of sentences, or a file cannot be read.
    """
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

"""Reads the text of files, by format."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from pyramidions.base.errors import UserError
from pyramidions.documents.docx import docx_text
from pyramidions.documents.epub import epub_text
from pyramidions.documents.latex import BEGIN, read_latex
from pyramidions.documents.markdown_page import markdown_pages
from pyramidions.documents.page_text import decoded_page, page_text
from pyramidions.documents.paper_xml import FORMATS, Paper, read_paper
from pyramidions.documents.pdf import pdf_text
from pyramidions.documents.pptx import pptx_text
from pyramidions.documents.records import known_ending
from pyramidions.documents.subtitles import subtitle_lines
from pyramidions.files.bounded import LINE_LIMIT, MEBIBYTE, printable, require_at_most
from pyramidions.files.lines import decoded, decoded_file, is_utf16
from pyramidions.files.parallel import in_limits
from pyramidions.text.headings import HeadedText

#: Read papers, whose format says what is title, abstract and section.
PAPERS: dict[str, Callable[[Path], Paper]] = {
    ".xml": read_paper,
    ".nxml": read_paper,
    ".tex": read_latex,
    ".tar.gz": read_latex,
}
# What shows that a file is a paper, and among how many of its first bytes.
_MARKS = {".xml": ([*FORMATS], 4096), ".tex": ([BEGIN], 4 * MEBIBYTE)}
#: The largest file that is read, of .jsonl files the longest line, in MiB; it is held in memory, in some formats as a
#: multiple of its size.
LIMITS = {
    ".txt": 1024,
    ".md": 64,
    ".html": 256,
    ".htm": 256,
    ".pdf": 256,
    ".docx": 256,
    ".pptx": 256,
    ".epub": 256,
    ".xml": 64,
    ".nxml": 64,
    ".tex": 4,
    ".tar.gz": 256,
    ".vtt": 64,
    ".srt": 64,
    ".jsonl": LINE_LIMIT,
    ".jsonl.gz": LINE_LIMIT,
    ".jsonl.xz": LINE_LIMIT,
}
#: What reading one file of a format other than text may take: processor time in seconds for each MiB that it begins,
#: and memory in MiB beside `MEMORY_RATIO` times its size. A small file may unpack to much, and the libraries take time
#: quadratic in some of what they read.
SECONDS, MEMORY, MEMORY_RATIO = 60, 1024, 8
# They take long to import, so that is not done for each file anew.
_LIBRARIES = {
    ".pdf": ["pypdfium2"],
    ".docx": ["mammoth"],
    ".md": ["markdown_it", "mdit_py_plugins"],
    ".tex": ["pylatexenc.latex2text"],
    ".tar.gz": ["pylatexenc.latex2text"],
}


def file_ending(path: Path) -> str:
    """Return which of `LIMITS` a name ends in, in upper or lower case; "" for any other name."""
    return known_ending(path, LIMITS)


def may_be_paper(path: Path) -> bool:
    """Return whether a file may be a paper; others in XML and LaTeX are many. True if that cannot be told."""
    if path.suffix.lower() not in _MARKS:
        return True
    marks, most = _MARKS[path.suffix.lower()]
    with suppress(OSError), path.open("rb") as file:
        begin = file.read(most)
        return any(mark.encode() in begin for mark in marks)
    return True


def holds_records(path: Path) -> bool:
    """Return whether a file holds a document a line."""
    return file_ending(path).startswith(".jsonl")


def file_text(path: Path) -> str:
    """Return the text of a regular file by its ending, with the headings of all formats but plain text and subtitles.

    A UserError says that it is not what its ending says, is too large, or takes too long or too much memory to read.
    """
    ending = file_ending(path)
    size = path.stat().st_size
    require_at_most(LIMITS[ending], size, printable(path))
    if ending == ".txt":
        return _text(path)
    if ending in (".vtt", ".srt"):
        return "\n".join(subtitle_lines(_text(path).splitlines()))
    for library in _LIBRARIES.get(ending, []):
        import_module(library)
    seconds, memory = SECONDS * (1 + size // MEBIBYTE), MEMORY * MEBIBYTE + MEMORY_RATIO * size
    return in_limits(partial(_READERS[ending], path), printable(path), seconds, memory)


def text_lines(file: BinaryIO, name: str) -> Iterator[str]:
    """Yield the lines of a plain text in UTF-8, holding one at a time, or in UTF-16 with its mark; then close it."""
    read = 0
    with file:
        for line in file:
            if not read:
                _refuse_other(line, name)
                if is_utf16(line):
                    yield from decoded_file(line + file.read(), name).splitlines()
                    return
            text = decoded(line, name, read)
            yield from (text if read else text.removeprefix("\ufeff")).splitlines()
            read += len(line)


def _text(path: Path) -> str:
    content, name = path.read_bytes(), printable(path)
    _refuse_other(content, name)
    return decoded_file(content, name)


def _refuse_other(begin: bytes, name: str) -> None:
    """Refuse a file of another format than its name says, by its first bytes."""
    others = {b"%PDF-": "a PDF file: give it a name that ends in .pdf", b"PK\x03\x04": "no text but an archive"}
    for mark, said in others.items():
        if begin.startswith(mark):
            raise UserError(f"{name} is {said}.")


def _page(path: Path) -> HeadedText:
    name = printable(path)
    return page_text(decoded_page(path.read_bytes(), name), name)


def _markdown(path: Path) -> HeadedText:
    return page_text("".join(markdown_pages(_text(path))), printable(path))


def paper_of(path: Path) -> Paper:
    """Read a paper of a format in `PAPERS`; errors are those of its reader."""
    return PAPERS[file_ending(path)](path)


_READERS: dict[str, Callable[[Path], HeadedText]] = {
    ".md": _markdown,
    ".html": _page,
    ".htm": _page,
    ".pdf": pdf_text,
    ".docx": docx_text,
    ".pptx": pptx_text,
    ".epub": epub_text,
    **dict.fromkeys(PAPERS, lambda path: paper_of(path).text),
}

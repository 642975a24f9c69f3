"""Reads the text of files, by format."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
from pyramidions.text.text_windows import holds_text

#: Read papers, whose format says what is title, abstract and section.
PAPERS: dict[str, Callable[[Path], Paper]] = {
    ".xml": read_paper,
    ".nxml": read_paper,
    ".tex": read_latex,
    ".tar.gz": read_latex,
}
# What shows that a file is a paper, and among how many of its first bytes.
_MARKS = {".xml": ([*FORMATS], 4096), ".tex": ([BEGIN], 4 * MEBIBYTE)}
#: What reading one file may take: processor time in seconds for each MiB that it begins,
#: and memory in MiB beside `MEMORY_RATIO` times its size. A small file may unpack to much, and the libraries take time
#: quadratic in some of what they read.
SECONDS, MEMORY, MEMORY_RATIO = 60, 1024, 8


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
    form = _BY_ENDING[ending]
    for library in form.libraries:
        import_module(library)
    seconds, memory = SECONDS * (1 + size // MEBIBYTE), MEMORY * MEBIBYTE + MEMORY_RATIO * size
    text = in_limits(partial(form.read, path), printable(path), seconds, memory)
    if size and form.read not in (_text, _subtitles) and not holds_text(text):
        raise UserError(f"{printable(path)} holds no running text, only tables, captions, code or pictures perhaps.")
    return text


# How a web page begins; a text about "<html> ..." goes on in words.
_WEB_PAGE = re.compile(rb"\s*<(?:!doctype html|html(?=\s|>\s*(?:<|$)))", re.IGNORECASE)


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


def _text(path: Path, may_hold_html: bool = False) -> str:
    content, name = path.read_bytes(), printable(path)
    _refuse_other(content, name, may_hold_html)
    return decoded_file(content, name)


def _refuse_other(begin: bytes, name: str, may_hold_html: bool = False) -> None:
    """Refuse a file of another format than its name says, by its first bytes."""
    others = {b"%PDF-": "a PDF file: give it a name that ends in .pdf", b"PK\x03\x04": "no text but an archive"}
    for mark, said in others.items():
        if begin.startswith(mark):
            raise UserError(f"{name} is {said}.")
    if not may_hold_html and _WEB_PAGE.match(begin):
        raise UserError(f"{name} is a web page: save it as a file that ends in .html.")


def _page(path: Path) -> HeadedText:
    name = printable(path)
    return page_text(decoded_page(path.read_bytes(), name), name)


def _markdown(path: Path) -> HeadedText:
    return page_text("".join(markdown_pages(_text(path, may_hold_html=True))), printable(path))


def paper_of(path: Path) -> Paper:
    """Read a paper of a format in `PAPERS`; errors are those of its reader."""
    return PAPERS[file_ending(path)](path)


def _subtitles(path: Path) -> str:
    return "\n".join(subtitle_lines(_text(path).splitlines()))


def _paper_text(path: Path) -> HeadedText:
    return paper_of(path).text


class _Format(NamedTuple):
    """How the files of an ending are read."""

    limit: int  # MiB of the largest that is read; it is held in memory, in some formats as a multiple of its size
    read: Callable[[Path], str]
    libraries: tuple[str, ...] = ()  # take long to import, so that this is not done for each file anew


_LATEX = ("pylatexenc.latex2text",)
_BY_ENDING = {
    ".txt": _Format(1024, _text),
    ".md": _Format(64, _markdown, ("markdown_it", "mdit_py_plugins")),
    ".html": _Format(256, _page),
    ".htm": _Format(256, _page),
    ".pdf": _Format(256, pdf_text, ("pypdfium2",)),
    ".docx": _Format(256, docx_text, ("mammoth",)),
    ".pptx": _Format(256, pptx_text),
    ".epub": _Format(256, epub_text),
    ".xml": _Format(64, _paper_text),
    ".nxml": _Format(64, _paper_text),
    ".tex": _Format(4, _paper_text, _LATEX),
    ".tar.gz": _Format(256, _paper_text, _LATEX),
    ".vtt": _Format(64, _subtitles),
    ".srt": _Format(64, _subtitles),
}
#: MiB of the largest file of each ending that is read, of .jsonl files of the longest line.
LIMITS = {ending: form.limit for ending, form in _BY_ENDING.items()}
LIMITS |= dict.fromkeys((".jsonl", ".jsonl.gz", ".jsonl.xz"), LINE_LIMIT)

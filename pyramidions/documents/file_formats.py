"""Reads the text of files, by format."""

import signal
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

from pyramidions.base.errors import UserError
from pyramidions.documents.markdown_page import markdown_pages
from pyramidions.documents.page_text import page_text
from pyramidions.documents.pdf_layout import laid_out
from pyramidions.documents.pdf_lines import page_lines
from pyramidions.documents.running_lines import without_running_lines
from pyramidions.files.bounded import LINE_LIMIT, MEBIBYTE, printable, require_at_most
from pyramidions.files.lines import encoding_hint
from pyramidions.files.parallel import KilledError, in_process

#: The largest file that is read, of .jsonl files the longest line, in MiB; it is held in memory, in some formats as a
#: multiple of its size.
LIMITS = {
    ".txt": 1024,
    ".md": 64,
    ".html": 256,
    ".htm": 256,
    ".pdf": 256,
    ".docx": 256,
    ".jsonl": LINE_LIMIT,
    ".jsonl.gz": LINE_LIMIT,
    ".jsonl.xz": LINE_LIMIT,
}
#: What reading one file of a format other than .txt may take: processor time in seconds for each MiB that it begins,
#: and memory in MiB beside `MEMORY_RATIO` times its size. A small file may unpack to much, and the libraries take time
#: quadratic in some of what they read.
SECONDS, MEMORY, MEMORY_RATIO = 60, 1024, 8
#: What a .docx file may unpack to, in MiB and beside that as a multiple of its size.
UNPACKED, UNPACKED_RATIO = 16, 32
# mammoth makes headings of Word's own styles, but not of this one. It knows a style by its name, which Word translates,
# or by its id.
_TITLE = "p[style-name='Title'] => h1:fresh\np.Title => h1:fresh"
# They take long to import, so that is not done for each file anew.
_LIBRARIES = {".pdf": ["pypdf"], ".docx": ["mammoth"], ".md": ["markdown_it", "mdit_py_plugins"]}


def file_ending(path: Path) -> str:
    """Return what decides how a file is read, in lower case: ".jsonl.xz", or the last suffix of any other name."""
    ending = "".join(path.suffixes[-2:]).lower()
    return ending if ending in LIMITS else path.suffix.lower()


def holds_records(path: Path) -> bool:
    """Return whether a file holds a document a line."""
    return file_ending(path).startswith(".jsonl")


def file_text(path: Path, *, headings: bool = False) -> str:
    """Return the text of a file.

    Args:
        path: a regular file; its ending, one of `LIMITS` but .jsonl, decides how it is read.
        headings: write the headings of .md, .html, .pdf and .docx files in markdown, and their paragraphs on lines of
            their own. The text of other files is the same either way.

    Raises:
        UserError: the file is not what its ending says, is too large, or takes too long or too much memory.
        OSError: it cannot be read at all.
    """
    ending = path.suffix.lower()
    size = path.stat().st_size
    require_at_most(LIMITS[ending], size, printable(path))
    read = (_HEADED if headings else _READERS)[ending]
    if ending == ".txt":
        return read(path)
    for library in _LIBRARIES.get(ending, []):
        import_module(library)
    seconds, memory = SECONDS * (1 + size // MEBIBYTE), MEMORY * MEBIBYTE + MEMORY_RATIO * size
    try:
        return in_process(partial(read, path), seconds=seconds, memory=memory)
    except (KilledError, MemoryError) as error:
        if isinstance(error, KilledError) and error.exit_code not in (-signal.SIGKILL, -signal.SIGXCPU):
            raise UserError(f"{printable(path)} cannot be read. {error}") from None
        raise UserError(
            f"{printable(path)} must take at most {seconds:,} s of processor time and {memory // MEBIBYTE:,} MiB of "
            "memory to read, for its size, but takes more."
        ) from None


def decoded(content: bytes, name: str) -> str:
    """Return UTF-8 as text, without the byte-order mark.

    Raises:
        UserError: the bytes are not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = encoding_hint(content)
        raise UserError(f"{name} must be UTF-8, but is not at byte {error.start}{hint}.") from None


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a .txt file, of which none but the last is held.

    Raises:
        UserError, OSError: as `file_text`.
    """
    require_at_most(LIMITS[".txt"], path.stat().st_size, printable(path))
    read = 0
    with path.open("rb") as file:
        for line in file:
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                place = f"byte {read + error.start}{encoding_hint(line)}"
                raise UserError(f"{printable(path)} must be UTF-8, but is not at {place}.") from None
            yield from (text if read else text.removeprefix("\ufeff")).splitlines()
            read += len(line)


def _text(path: Path) -> str:
    return decoded(path.read_bytes(), printable(path))


def _page(path: Path, *, headings: bool = False) -> str:
    return page_text(_text(path), printable(path), headings=headings)


def _markdown(path: Path, *, headings: bool = False) -> str:
    pages = markdown_pages(_text(path))
    return "".join(page_text(page, printable(path), headings=headings) for page in pages)


def _pdf(path: Path, *, headings: bool = False) -> str:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports every flaw that it recovers from
    name = printable(path)
    with path.open("rb") as file:
        try:
            pages = [page_lines(page) for page in PdfReader(file).pages]
        except MemoryError:
            raise
        except (DependencyError, FileNotDecryptedError):
            raise UserError(f"{name} is encrypted: save it without a password first.") from None
        except Exception as error:
            # A damaged file can make the library raise any error.
            raise UserError(f"{name} cannot be read as PDF ({type(error).__name__}).") from None
    text = laid_out(without_running_lines(pages), headings=headings)
    if not text.strip():
        raise UserError(f"{name} holds no text, only pictures perhaps: run optical character recognition (OCR) first.")
    return text


def _docx(path: Path, *, headings: bool = False) -> str:
    import mammoth

    name = printable(path)
    try:
        with path.open("rb") as file:
            # The library's time is quadratic in the longest text, so a bomb would take all of its time before it ends.
            unpacked = sum(part.file_size for part in ZipFile(file).infolist()) // MEBIBYTE
            if unpacked > (most := UNPACKED + UNPACKED_RATIO * path.stat().st_size // MEBIBYTE):
                raise UserError(f"{name} must unpack to at most {most:,} MiB, for its size, but has {unpacked:,}.")
            if not headings:
                return str(mammoth.extract_raw_text(file).value)
            # Pictures would be text of many megabytes; footnotes are no part of the plain text either.
            no_pictures = mammoth.images.img_element(lambda _: {})
            no_notes = mammoth.transforms.element_of_type(
                mammoth.documents.NoteReference, lambda _: mammoth.documents.text("")
            )
            page = mammoth.convert_to_html(
                file, convert_image=no_pictures, transform_document=no_notes, style_map=_TITLE
            ).value
        return page_text(page, name, headings=True)
    except (UserError, MemoryError):
        raise
    except Exception as error:
        # A damaged file can make the library raise any error.
        raise UserError(f"{name} cannot be read as .docx ({type(error).__name__}).") from None


_READERS = {".txt": _text, ".md": _markdown, ".html": _page, ".htm": _page, ".pdf": _pdf, ".docx": _docx}
_HEADED = _READERS | dict.fromkeys([".html", ".htm"], partial(_page, headings=True))
_HEADED |= {
    ".md": partial(_markdown, headings=True),
    ".pdf": partial(_pdf, headings=True),
    ".docx": partial(_docx, headings=True),
}

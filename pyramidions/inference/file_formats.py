"""Reads the text of files, by format."""

from functools import partial
from pathlib import Path

from pyramidions.errors import UserError
from pyramidions.files.bounded import LINE_LIMIT, printable, require_at_most
from pyramidions.inference.markdown_page import markdown_pages
from pyramidions.inference.page_text import page_text
from pyramidions.inference.pdf_layout import laid_out
from pyramidions.inference.pdf_lines import page_lines
from pyramidions.inference.running_lines import without_running_lines

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
#: The largest content stream of a page in a .pdf file, in MiB: reading its text takes time quadratic in its size.
PAGE_LIMIT = 16
# mammoth makes headings of Word's own styles, but not of this one. It knows a style by its name, which Word translates,
# or by its id.
_TITLE = "p[style-name='Title'] => h1:fresh\np.Title => h1:fresh"
#: The most XML in a .docx file, unpacked, in MiB: it is parsed into a tree.
XML_LIMIT = 32


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
        UserError: the file is not what its ending says, or too large.
        OSError: it cannot be read at all.
    """
    ending = path.suffix.lower()
    require_at_most(LIMITS[ending], path.stat().st_size, printable(path))
    return (_HEADED if headings else _READERS)[ending](path)


def decoded(content: bytes, name: str) -> str:
    """Return UTF-8 as text, without the byte-order mark.

    Raises:
        UserError: the bytes are not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} must be UTF-8, but is not at byte {error.start}.") from None


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
    pages = []
    with path.open("rb") as file:
        try:
            for number, page in enumerate(PdfReader(file).pages, 1):
                if (drawing := page.get_contents()) is not None:
                    require_at_most(PAGE_LIMIT, len(drawing.get_data()), f"{name}, page {number},")
                pages.append(page_lines(page))
        except UserError:
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
    import zipfile

    import mammoth

    name = printable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
        size = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
        require_at_most(XML_LIMIT, size, f"The XML in {name}")
        with path.open("rb") as file:
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
    except UserError:
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

"""Reads books in EPUB."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from zipfile import ZipFile

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.documents.page_text import decoded_page, page_text
from pyramidions.documents.xml_tree import member_tree, xml_archive
from pyramidions.files.bounded import printable
from pyramidions.text.headings import HeadedText

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")
# Names of a page that says who made the book, and the beginning of one that says so of itself.
_IMPRINT = re.compile(r"copyright|imprint|impressum|colophon|title[-_ ]?page|half[-_ ]?title", re.IGNORECASE)
_BEGINS_IMPRINT = re.compile(rf"<(?:body|section)\s[^<>]*\btype=[\"'][^\"'<>]*(?:{_IMPRINT.pattern})", re.IGNORECASE)
# What such a page says that has no such name: two of these, near either end of the book.
_SAYS = re.compile(
    r"\b(isbn)\b|(©|&copy;|&#169;|\bcopyright\b|public domain)|((?:rights|rechte|droits|derechos|direitos) (?:r[eé]ser|"
    r"vorbe)|diritti riservati|права защищены|版权所有)|\b((?:published|printed|typeset) (?:by|in|at)\b|first publ|"
    r"verlag\b|éditions\b|dépôt légal|editorial\b|издательство|出版)",
    re.IGNORECASE,
)
_EITHER_END, _LONGEST_IMPRINT = 3, 12_000  # pages, and bytes of one
#: Share of a book's bytes, from which on a page is the text, whatever its name.
_SMALL = 0.2


def epub_text(path: Path) -> HeadedText:
    """Return the text of a book: its pages in their order, with headings, but without contents and imprint."""
    name = printable(path)
    with xml_archive(path) as book:
        return HeadedText.of(part for page in _pages(book, name) for part in (*page_text(page, name).parts(), "\n\n"))


def _pages(book: ZipFile, name: str) -> Iterator[str]:
    """Yield the pages of a book."""
    package = next((each.get("full-path", "") for each in member_tree(book, _CONTAINER, name).iter("rootfile")), "")
    root, folder = member_tree(book, package, name), posixpath.dirname(package)
    items = {each.get("id"): each for each in root.iter("item")}
    spine = [items[each.get("idref")] for each in root.iter("itemref") if each.get("idref") in items]
    chosen = [
        each for each in spine if each.get("media-type") in _PAGES and "nav" not in each.get("properties", "").split()
    ]
    if not chosen:
        raise UserError(f"{name} must hold pages, but holds none.")
    encrypted = _encrypted(book, name)

    def place(element: etree._Element) -> str:
        return posixpath.normpath(posixpath.join(folder, unquote(element.get("href", "").partition("#")[0])))

    # EPUB 2 names the page of contents so.
    contents = {place(each) for each in root.iter("reference") if each.get("type") == "toc"}
    imprints = {place(each) for each in root.iter("reference") if _IMPRINT.search(each.get("type", ""))}
    imprints |= {place(each) for each in chosen if _IMPRINT.search(f"{each.get('id')} {each.get('href')}")}
    pages = [page for page in map(place, chosen) if page not in contents]
    sizes = {each.filename: each.file_size for each in book.infolist()}
    most = _SMALL * sum(sizes.get(page, 0) for page in pages)
    for number, page in enumerate(pages):
        if page in encrypted:
            raise UserError(f"{name} must not be encrypted, but its page {page} is.")
        text = decoded_page(book.read(page), f"{name}/{page}")
        is_at_end = min(number, len(pages) - 1 - number) < _EITHER_END and sizes[page] <= _LONGEST_IMPRINT
        says = is_at_end and len({found.lastindex for found in _SAYS.finditer(text)}) > 1
        if sizes[page] > most or not (says or page in imprints or _BEGINS_IMPRINT.search(text)):
            yield text


def _encrypted(book: ZipFile, name: str) -> set[str]:
    """Return the files of a book that are encrypted; fonts often are."""
    if _ENCRYPTION not in book.namelist():
        return set()
    return {unquote(each.get("URI", "")) for each in member_tree(book, _ENCRYPTION, name).iter("CipherReference")}

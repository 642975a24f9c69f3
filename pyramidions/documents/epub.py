"""Reads books in EPUB."""

import posixpath
import re
from collections.abc import Iterator
from html import unescape
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
# What such a page says that has no such name: two of these, near either end of the book. Prose does not say the first.
_SAYS = re.compile(
    r"\b(isbn)\b|((?:\bcopyright )?©|\bcopyright (?:by|\d{4}))|((?:rights|rechte|droits|derechos|direitos) "
    r"(?:r[eé]ser|vorbe)|diritti riservati|права защищены|版权所有)|\b(typeset (?:by|in)\b)|(\bcopyright\b|"
    r"public domain)|\b((?:published|printed) (?:by|in|at)\b|first publ|verlag\b|éditions\b|dépôt légal|editorial\b|"
    r"издательство|出版)",
    re.IGNORECASE,
)
_LAST_SURE = 4
_UNSEEN = re.compile(r"<head\b(?:[^<]|<(?!/head))*+|<[^<>]*>", re.IGNORECASE)
_EITHER_END, _LONGEST_IMPRINT = 3, 12_000  # pages, and bytes of one
_APART = 300  # characters of such a page for each of these
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
    size = sum(sizes.get(page, 0) for page in pages)
    if closed := [page for page in pages if page in encrypted]:
        raise UserError(f"{name} must not be encrypted, but its page {closed[0]} is.")
    texts = {page: decoded_page(book.read(page), f"{name}/{page}") for page in pages}
    imprints |= {page for page in pages if _BEGINS_IMPRINT.search(texts[page])}
    ends = {page for page in pages[:_EITHER_END] + pages[-_EITHER_END:] if sizes[page] <= _LONGEST_IMPRINT}
    says = {page for page in ends if _says_who_made_it(texts[page])}
    # Where most pages say so, they are the book.
    if 2 * len(says) <= len(pages) and 2 * sum(sizes[page] for page in says) <= size:
        imprints |= says
    yield from (texts[page] for page in pages if sizes[page] > _SMALL * size or page not in imprints)


def _says_who_made_it(page: str) -> bool:
    """Return whether a page says little else than who made the book."""
    text = " ".join(unescape(_UNSEEN.sub(" ", page)).split())
    said = [found.lastindex or 0 for found in _SAYS.finditer(text)]
    return len(set(said)) > 1 and min(said) <= _LAST_SURE and len(text) <= _APART * len(said)


def _encrypted(book: ZipFile, name: str) -> set[str]:
    """Return the files of a book that are encrypted; fonts often are."""
    if _ENCRYPTION not in book.namelist():
        return set()
    return {unquote(each.get("URI", "")) for each in member_tree(book, _ENCRYPTION, name).iter("CipherReference")}

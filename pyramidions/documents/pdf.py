"""The text of a PDF file."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.documents.lost import note_lost
from pyramidions.documents.pdf_layout import laid_out, without_running_lines
from pyramidions.documents.pdf_page import RIGHT_TO_LEFT, UNPRINTABLE, PdfLine, page_lines
from pyramidions.files.bounded import printable
from pyramidions.text.headings import HeadedText

#: A text is garbled from this share of odd tokens on: it is at most 0.001 in 37 sound files. Kinds of
#: tokens that are signs alone are odd from the other share on: they are at most 0.06 in 52 sound files.
GARBLED, _SIGNS = 0.06, 0.5
#: Above this share, nothing can be done with a text.
_UNREADABLE = 0.5
_AS_PICTURES = "`ocrmypdf --force-ocr IN OUT` makes text of its pages"
#: Most seconds that another reader may take.
_SECONDS = 120

_TOKEN = re.compile(r"\S+")
# Most lines of a stamp on a scanned page, the share of the page's height at either end in which it stands, and that of
# tokens that are words below which a text layer is lost.
_STAMP_LINES, _EDGE, _FEW = 2, 0.1, 0.1
#: Share of a text from which on it runs from right to left.
_MANY = 0.3


def pdf_text(path: Path) -> HeadedText:
    """Return the prose of a file, with its headings, and without the lines that run through its pages.

    A text that is garbled, as of a font that does not say which letters it draws, is read by poppler's `pdftotext`
    where that is installed and reads it better; then it has no headings of its own. A note says that it was garbled. A
    text from right to left is read by `pdftotext`, too: pdfium loses its numbers. Pages that are pictures are left out,
    and a note names them.
    """
    name = printable(path)
    pages, pictures, failed = _pages(path, name)
    if failed:
        note(f"{name}: {failed:,} of {len(pages):,} pages are damaged and were left out.")
    odd, fault, lost = odd_share(pages), "", ""
    if odd > GARBLED:
        fault, lost = "names too few of its letters", f"so {odd:.0%} of its words are garbled: {_AS_PICTURES}"
    elif _runs_right_to_left(pages):
        lost = (
            "so that numbers and the order of its words may be lost: poppler's pdftotext reads it, but is not installed"
        )
        fault = "runs from right to left"
    if fault:
        other = _by_poppler(path)
        reads_better = bool(other) and (odd <= GARBLED or odd_share(other) < odd / 2)
        pages = other + pages[len(other) :] if reads_better else pages
        if odd > _UNREADABLE and not reads_better:
            raise UserError(f"{name} {fault}, {lost}.")
        note(f"{name} {fault}: pdftotext read it." if reads_better else f"{name} {fault}, {lost}.")
    for number in pictures:
        pages[number] = []  # without the stamps of a scanner or a library
    kept = without_running_lines(pages)
    text = laid_out(kept)
    if not text.strip() and pictures:
        raise UserError(f"{name} holds no text: {_are_pictures(pictures)}.")
    if not text.strip() and any(any(map(str.isalnum, line.text)) for page in kept for line in page):
        raise UserError(f"{name} holds no running text, only tables, a form, or labels of figures.")
    if not text.strip():
        raise UserError(f"{name} holds no text, only pictures perhaps: `ocrmypdf --force-ocr IN OUT` reads them.")
    note_lost(name, (line.text for page in kept for line in page), text)
    if pictures:
        note(f"{name} was read without its scanned pages: {_are_pictures(pictures)}.")
    return text


def _are_pictures(numbers: Sequence[int]) -> str:
    """Say which pages are pictures, whose numbers count from 0 and rise, and what makes them text."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1]:
            ranges[-1][-1] += 1
        else:
            ranges.append([number + 1, number + 1])
    pages = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    are = "page {} is a picture" if len(numbers) == 1 else "pages {} are pictures"
    # Without these options, ocrmypdf refuses a file with pages of text.
    return f"{are.format(pages)}, and `ocrmypdf --force-ocr --pages {pages} IN OUT` makes text of them"


def _runs_right_to_left(pages: list[list[PdfLine]]) -> bool:
    text = "".join(line.text for page in pages for line in page)
    return len(RIGHT_TO_LEFT.findall(text)) > _MANY * len(text)


def odd_share(pages: list[list[PdfLine]]) -> float:
    """Return the share of tokens that hold characters of no script, or of kinds of tokens that are signs if most are.

    A kind counts once: the points of a plot are signs, too, but all the same. The share is 0 without tokens.
    """
    tokens = Counter(token for page in pages for line in page for token in _TOKEN.findall(line.text))
    odd = sum(count for token, count in tokens.items() if UNPRINTABLE.search(token)) / max(tokens.total(), 1)
    signs = sum(not any(map(str.isalnum, token)) for token in tokens) / max(len(tokens), 1)
    return max(odd, signs) if signs > _SIGNS else odd


def _pages(path: Path, name: str) -> tuple[list[list[PdfLine]], list[int], int]:
    """Return the lines of each page, the numbers of pages that are pictures, and how many pages are damaged."""
    import pypdfium2
    from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY):
            raise UserError(f"{name} is encrypted: save it without a password first.") from None
        raise UserError(f"{name} must be a PDF file, but is damaged or of another kind.") from None
    pages: list[list[PdfLine]] = []
    pictures: list[int] = []
    failed = 0
    try:
        for number in range(len(document)):
            try:
                page = document[number]
                lines = page_lines(page)
                if _is_stamp(lines, page.get_height()) and _is_picture(page, 0.9 if lines else 0.5):
                    pictures.append(number)
                pages.append(lines)
                page.close()
            except pypdfium2.PdfiumError:
                failed += 1
                pages.append([])
    finally:
        document.close()
    if failed == len(pages):
        raise UserError(f"{name} must be a PDF file, but each of its pages is damaged.")
    return pages, pictures, failed


def _is_stamp(lines: list[PdfLine], height: float) -> bool:
    """Whether a page's text is at most what a scanner or a library puts at its edge, or hardly a token has a word."""
    tokens = [token[:3] for line in lines for token in line.text.split()]
    is_lost = sum(len(token) == 3 and token.isalpha() for token in tokens) < _FEW * len(tokens)
    middle = range(round(_EDGE * height), round((1 - _EDGE) * height))
    return is_lost or (len(lines) <= _STAMP_LINES and not any(round(line.y) in middle for line in lines))


def _is_picture(page: Any, share: float = 0.5) -> bool:
    """Whether pictures cover at least a share of a page: some scanners cut one into strips."""
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    width, height = page.get_size()
    places = [drawn.get_bounds() for drawn in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE])]
    covered = sum((right - left) * (top - bottom) for left, bottom, right, top in places)
    return bool(covered >= share * width * height)


def _by_poppler(path: Path) -> list[list[PdfLine]]:
    """Return the lines of pages as poppler reads them, without their type and their places; none without poppler."""
    program = shutil.which("pdftotext")
    if program is None:
        return []
    command = [program, "-q", "-enc", "UTF-8", str(path.absolute()), "-"]
    try:
        text = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return []
    return [
        [PdfLine(line.strip()) for line in page.splitlines() if line.strip()]
        for page in text.decode("utf-8", "replace").split("\f")
    ]

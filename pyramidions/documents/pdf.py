"""The text of a PDF file: lines with their type and their place, without running lines, as paragraphs and headings."""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from math import hypot
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.files.bounded import printable
from pyramidions.text.headings import HeadedText

if TYPE_CHECKING:
    from pypdf import PageObject

_BOLD = re.compile("bold|black|heavy|cmbx", re.IGNORECASE)
#: Most lines that are taken from either end of a page.
DEPTH = 4
#: A line runs if it ends this many pages (a page number: two) among `NEARBY` consecutive ones. Odd and even pages, and
#: chapters, have headers of their own.
FEWEST, NEARBY = 3, 7
#: A longer line is text, in characters.
LONGEST = 200

_PAGE_NUMBER = re.compile(r"[\W_]*+(?:page|p\.)?\s*(\d{1,5})(?:\s*(?:of|/)\s*\d{1,5})?[\W_]*", re.IGNORECASE)
_ROMAN = re.compile(r"[ivxlc]+")
_DIGITS = re.compile(r"\d+")
#: Type is larger, and lines stand further apart, from these ratios on.
_LARGER, _MUCH_LARGER, _APART = 1.1, 1.2, 1.5
_MOST_LINES, _MOST_WORDS, _DEEPEST = 3, 20, 6
_WORD = re.compile(r"[^\W\d_]{2,}")
_ENDS_SENTENCE = tuple(".:;,…")


class PdfLine(NamedTuple):
    """A line of a page, or characters of it that were drawn at once.

    Attributes:
        text: of the line.
        size: of its type, in points, as most of its characters have it; 0 if unknown.
        is_bold: all of it.
        y: height above the bottom of the page, in points.
    """

    text: str
    size: float = 0.0
    is_bold: bool = False
    y: float = 0.0


_Block = list[PdfLine]


def pdf_text(path: Path) -> HeadedText:
    """Return the text of a file, with its headings, and without the lines that run through its pages.

    Raises:
        UserError: it is damaged or encrypted, or holds no text.
    """
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
    text = laid_out(without_running_lines(pages))
    if not text.strip():
        raise UserError(f"{name} holds no text, only pictures perhaps: run optical character recognition (OCR) first.")
    return text


def page_lines(page: "PageObject") -> list[PdfLine]:
    """Return the lines of a page in the order in which they are drawn; empty ones at either end are left out."""
    pieces: list[PdfLine] = []

    def visit(text: str, page_matrix: list[float], matrix: list[float], font: Any, size: float) -> None:
        # The matrix of the text, then that of the page; each maps (x, y) to (ax + cy + e, bx + dy + f).
        a, b, c, d, _, f = page_matrix
        height = hypot(matrix[2] * a + matrix[3] * c, matrix[2] * b + matrix[3] * d)
        is_bold = bool(_BOLD.search(str((font or {}).get("/BaseFont", ""))))
        pieces.append(PdfLine(text, size * height, is_bold, matrix[4] * b + matrix[5] * d + f))

    text = page.extract_text(visitor_text=visit)
    lines = _lines(pieces) if "".join(piece.text for piece in pieces) == text else map(PdfLine, text.split("\n"))
    return _stripped(list(lines))


def _lines(pieces: list[PdfLine]) -> list[PdfLine]:
    lines: list[list[PdfLine]] = [[]]
    for piece in pieces:
        first, *rest = piece.text.split("\n")
        lines[-1].append(piece._replace(text=first))
        lines += ([piece._replace(text=text)] for text in rest)
    return [_line(line) for line in lines]


def _line(pieces: list[PdfLine]) -> PdfLine:
    text = "".join(piece.text for piece in pieces)
    seen = [piece for piece in pieces if piece.text.strip()]
    if not seen:
        return PdfLine(text)
    longest = max(seen, key=lambda piece: len(piece.text.strip()))
    return PdfLine(text, longest.size, all(piece.is_bold for piece in seen), longest.y)


def _stripped(lines: list[PdfLine]) -> list[PdfLine]:
    held = [index for index, line in enumerate(lines) if line.text.strip()]
    return lines[held[0] : held[-1] + 1] if held else []


def without_running_lines(pages: list[list[PdfLine]]) -> list[list[PdfLine]]:
    """Return pages without the lines that run through them.

    The first and the last line of a page go if the same line, in type of the same size, is the first or the last of at
    least `FEWEST` pages among `NEARBY` consecutive ones, whatever digits are in it; then the lines next to them, up to
    `DEPTH` at either end. A number alone, or as in "Page 3 of 10", goes if it counts up with the pages, on two of them
    at least. All other lines stay: those of more than
    `LONGEST` characters, those that repeat once, the title above a header of the same words in smaller type,
    and all lines of a document of two pages but its page numbers.
    """
    pages = [list(page) for page in pages]
    for _ in range(DEPTH):
        running = _running(pages)
        for number, page in enumerate(pages):
            for end in (0, -1):
                if page and _key(page[end], number) in running:
                    page.pop(end)
    return pages


# What is the same on all pages that a line runs through; the first part of that of a page number is empty.
_Key = tuple[str, int]


def _running(pages: list[list[PdfLine]]) -> set[_Key | None]:
    seen: dict[_Key, list[int]] = defaultdict(list)
    for number, page in enumerate(pages):
        for key in {_key(line, number) for line in (*page[:1], *page[-1:])}:
            if key is not None:
                seen[key].append(number)
    return {key for key, numbers in seen.items() if _are_near(numbers, FEWEST if key[0] else 2)}


def _are_near(numbers: list[int], fewest: int) -> bool:
    return any(last - first < NEARBY for first, last in zip(numbers, numbers[fewest - 1 :], strict=False))


def _key(line: PdfLine, page: int) -> _Key | None:
    text = " ".join(line.text.split())
    if len(text) > LONGEST:
        return None
    if number := _PAGE_NUMBER.fullmatch(text):
        return "", int(number[1]) - page
    words = "i" if _ROMAN.fullmatch(text) else _DIGITS.sub("0", text)
    return (words, round(line.size)) if any(map(str.isalpha, words)) else None


def laid_out(pages: list[list[PdfLine]]) -> HeadedText:
    """Return the text of pages, one line of theirs a line, with an empty line between blocks.

    A block ends where the type changes its size clearly or turns bold or back, and above a wide gap, but not before a
    line that begins in lower case, unless its type is much smaller. The end of a page ends no block: a sentence goes on
    there. Short blocks in larger or bold type are headings, on one line; the largest type is the highest.

    Args:
        pages: without running lines.
    """
    body = _body_size(pages)
    blocks = list(_blocks(pages))
    types = sorted({_type(block[0]) for block in blocks if _is_heading(block, body)}, reverse=True)
    levels = {found: min(level, _DEEPEST) for level, found in enumerate(types, 1)}
    parts: list[str | int] = []
    for block in blocks:
        if _is_heading(block, body):
            parts += [levels[_type(block[0])], " ".join(line.text.strip() for line in block)]
        else:
            parts.append("\n".join(line.text for line in block))
        parts.append("\n\n")
    return HeadedText.of(parts[:-1])


def _body_size(pages: list[list[PdfLine]]) -> float:
    """Return the size of most of the text."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=sizes.__getitem__, default=0.0)


def _blocks(pages: list[list[PdfLine]]) -> Iterator[_Block]:
    gaps = [above.y - line.y for page in pages for above, line in pairwise(page) if above.y > line.y]
    wide = _APART * median(gaps) if gaps else 0.0
    block: _Block = []
    for page in pages:
        for number, line in enumerate(page):
            gap = page[number - 1].y - line.y if number else 0.0
            if block and _begins_block(block[-1], line, is_apart=gap > wide):
                yield block
                block = []
            block.append(line)
    if block:
        yield block


def _begins_block(above: PdfLine, line: PdfLine, *, is_apart: bool) -> bool:
    words = len(_WORD.findall(line.text))
    goes_on = line.text.lstrip()[:1].islower()
    if is_apart and words > 1 and not goes_on:
        return True
    # Symbols and numbers of formulas have sizes of their own.
    if not (words and _WORD.search(above.text)):
        return False
    if goes_on:
        return above.size > _MUCH_LARGER * line.size
    smaller, larger = sorted([above.size, line.size])
    return line.is_bold != above.is_bold or larger > _LARGER * smaller


def _is_heading(block: _Block, body: float) -> bool:
    first, text = block[0], " ".join(line.text for line in block).rstrip()
    # Bold cells of tables are smaller than the body in most cases.
    stands_out = first.size > _LARGER * body or (first.is_bold and first.size * _LARGER > body)
    is_short = len(block) <= _MOST_LINES and len(text.split()) <= _MOST_WORDS and not text.endswith(_ENDS_SENTENCE)
    return body > 0 and stands_out and is_short and _WORD.search(text) is not None


def _type(line: PdfLine) -> tuple[float, bool]:
    return round(line.size, 1), line.is_bold

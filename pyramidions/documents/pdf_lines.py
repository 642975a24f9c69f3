"""Finds the lines of a page of a PDF file, with their type and their place."""

import re
from math import hypot
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pypdf import PageObject

_BOLD = re.compile("bold|black|heavy|cmbx", re.IGNORECASE)


class PdfLine(NamedTuple):
    """A line of a page.

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


class _Piece(NamedTuple):
    """Characters that were drawn at once."""

    text: str
    size: float
    is_bold: bool
    y: float


def page_lines(page: "PageObject") -> list[PdfLine]:
    """Return the lines of a page in the order in which they are drawn; empty ones at either end are left out."""
    pieces: list[_Piece] = []

    def visit(text: str, page_matrix: list[float], matrix: list[float], font: Any, size: float) -> None:
        # The matrix of the text, then that of the page; each maps (x, y) to (ax + cy + e, bx + dy + f).
        a, b, c, d, _, f = page_matrix
        height = hypot(matrix[2] * a + matrix[3] * c, matrix[2] * b + matrix[3] * d)
        is_bold = bool(_BOLD.search(str((font or {}).get("/BaseFont", ""))))
        pieces.append(_Piece(text, size * height, is_bold, matrix[4] * b + matrix[5] * d + f))

    text = page.extract_text(visitor_text=visit)
    lines = _lines(pieces) if "".join(piece.text for piece in pieces) == text else map(PdfLine, text.split("\n"))
    return _stripped(list(lines))


def _lines(pieces: list[_Piece]) -> list[PdfLine]:
    lines: list[list[_Piece]] = [[]]
    for piece in pieces:
        first, *rest = piece.text.split("\n")
        lines[-1].append(piece._replace(text=first))
        lines += ([piece._replace(text=text)] for text in rest)
    return [_line(line) for line in lines]


def _line(pieces: list[_Piece]) -> PdfLine:
    text = "".join(piece.text for piece in pieces)
    seen = [piece for piece in pieces if piece.text.strip()]
    if not seen:
        return PdfLine(text)
    longest = max(seen, key=lambda piece: len(piece.text.strip()))
    return PdfLine(text, longest.size, all(piece.is_bold for piece in seen), longest.y)


def _stripped(lines: list[PdfLine]) -> list[PdfLine]:
    held = [index for index, line in enumerate(lines) if line.text.strip()]
    return lines[held[0] : held[-1] + 1] if held else []

"""Finds the paragraphs and headings of a PDF file by type and place."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from pyramidions.documents.pdf_lines import PdfLine

#: Type is larger, and lines stand further apart, from these ratios on.
_LARGER, _MUCH_LARGER, _APART = 1.1, 1.2, 1.5
_MOST_LINES, _MOST_WORDS, _DEEPEST = 3, 20, 6
_WORD = re.compile(r"[^\W\d_]{2,}")
_ENDS_SENTENCE = tuple(".:;,…")

_Block = list[PdfLine]


def laid_out(pages: list[list[PdfLine]], *, headings: bool = False) -> str:
    """Return the text of pages, one line of theirs a line, with an empty line between blocks.

    A block ends where the type changes its size clearly or turns bold or back, and above a wide gap, but not before a
    line that begins in lower case, unless its type is much smaller. The end of a page ends no block: a sentence goes on
    there.

    Args:
        pages: without running lines.
        headings: write short blocks in larger or bold type as markdown headings, the largest type as the highest.
    """
    body = _body_size(pages)
    blocks = list(_blocks(pages))
    marks = _marks(blocks, body) if headings else {}
    return "\n\n".join(
        _text(block, marks.get(_type(block[0])) if _is_heading(block, body) else None) for block in blocks
    )


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


def _marks(blocks: list[_Block], body: float) -> dict[tuple[float, bool], str]:
    """Return the mark of a heading in each type."""
    types = sorted({_type(block[0]) for block in blocks if _is_heading(block, body)}, reverse=True)
    return {found: "#" * min(level, _DEEPEST) for level, found in enumerate(types, 1)}


def _text(block: _Block, mark: str | None) -> str:
    if mark is None:
        return "\n".join(line.text for line in block)
    return f"{mark} {' '.join(line.text.strip() for line in block)}"

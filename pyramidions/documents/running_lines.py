"""Takes running headers, running footers and page numbers from the pages of a document."""

import re
from collections import defaultdict

from pyramidions.documents.pdf_lines import PdfLine

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

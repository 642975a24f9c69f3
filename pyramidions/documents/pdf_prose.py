"""What of a PDF file is prose, and the words that the ends of its lines cut."""

import re
from collections import Counter
from collections.abc import Iterable

from pyramidions.documents.pdf_page import PdfLine
from pyramidions.text.headings import CONTENTS
from pyramidions.text.hyphens import joint
from pyramidions.text.normalization import STOPS, UNSPACED

#: A block of lines, and whether it is a heading.
Block = tuple[list[PdfLine], bool]

#: Type of notes is at most this much of the size of the text's.
_SMALL = 0.93
#: Most lines of a caption, a note or a licence.
_MOST_LINES = 25
#: Most lines of a note without a mark.
_MOST_UNMARKED = 6
#: A line is a formula from this share of characters in type for formulas on.
_MATH = 0.3

_WORD = re.compile(r"[^\W\d_]{3,}")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_FORMULA = re.compile(r"[=<>+∑∫∏√≤≥∈⊂∪∩→←⇒∀∃∂∞≈≠±×·|{}^\[\]]")
# Dots that lead to the number of a page.
_LEADERS = (". . . .", ".....")
_CAPTION = re.compile(
    r"(?:extended data |supplementary )?(?:figure|fig\.|table|listing|algorithm|abbildung|tabelle|tableau|figura|tabla)"
    r" ?[A-Z]?\d+(?:[.\-]\d+)*[a-z]? ?(?:[:.|–—]|$)",
    re.IGNORECASE,
)
_KEYWORDS = re.compile(
    r"(?:key ?words?(?: and phrases)?|index terms|ccs concepts|general terms|categories and subject descriptors|"
    r"acm reference format|additional key words|msc|jel classification|pacs(?: numbers?)?)\b ?[:.\-—–•]?",
    re.IGNORECASE,
)
_LICENCE = re.compile(
    r"permission to make digital or hard copies|permission (?:to [a-z, ]{1,60} )?is (?:hereby )?granted|"
    r"redistribution and use in source|licensed under|under the terms of the|all rights reserved|without warranty|"
    r"copyright (?:©|\(c\)|\d{4})|(?:©|\(c\)) ?(?:copyright )?\d{4}|copyright held by|publication rights licensed",
    re.IGNORECASE,
)
_NOTE = re.compile(r"(?:\d{1,3}|[*†‡§¶∗]+) ?(?=[^\W\d_]|[\"“(])")
_ABSTRACT = re.compile(r"abstract\b", re.IGNORECASE)
LIST_ITEM = re.compile(r"[•◦▪–*\-] |\(?\d{1,3}[.)] |\(?[a-z]\) ")
_ENDS_SENTENCE = re.compile(rf"[{STOPS}:;：；][\"'”’)\]»」』）]*$")
_REST = re.compile(r"([^\W\d_][\w'’]*(?:-[^\W\d_][\w'’]*)*)(\S*)\s*")
#: A line of fewer words is a label or a cell; and words of tables for each beside them above which labels are no text.
_FEWEST_WORDS, _MOST_CELLS = 5, 5
_UNSPACED = re.compile(f"[{UNSPACED}]")
# An address that goes on behind the line's end.
_ADDRESS = re.compile(r"(?:https?://|\bwww\.)\S{0,200}(?:[._?=&-]|(/))$")
_COMPOUND = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def joined_hyphens(pages: list[list[PdfLine]]) -> list[list[PdfLine]]:
    """Return lines whose ends cut no word and no address: the rest is moved up, over pages as well."""
    known: Counter[str] = Counter()
    for page in pages:
        for line in page:
            known.update(word.lower() for word in _COMPOUND.findall(line.text.removesuffix("-")))
    done: list[list[PdfLine]] = []
    cut: tuple[int, int] | None = None  # page and place of a line that ends in a hyphen
    for number, page in enumerate(pages):
        done.append([])
        for line in page:
            if cut is not None:
                above = done[cut[0]][cut[1]]
                rest = _REST.match(line.text)
                # Other type, as of a figure or a note, does not go on with the word.
                address = _ADDRESS.search(above.text)
                # Behind a slash, an address may be complete.
                if address and address[1] and not line.text[:1].islower():
                    cut = None
                elif rest and abs(above.size - line.size) <= 0.1 * line.size:
                    text = _joined(above.text, rest, known)
                    done[cut[0]][cut[1]] = above._replace(text=text)
                    line = line._replace(text=line.text[rest.end() :])
                    cut = None
                elif len(done[-1]) > 8 and cut[0] == number:
                    cut = None
            if line.text:
                done[-1].append(line)
                is_cut = line.text.endswith("-") and line.text[-2:-1].isalnum() and not line.is_code
                if is_cut or _ADDRESS.search(line.text):
                    cut = number, len(done[-1]) - 1
    return done


def _joined(above: str, rest: re.Match[str], known: Counter[str]) -> str:
    """Return a line with the rest of the word, or of the address, that its end cuts."""
    if _ADDRESS.search(above):
        return above + rest[0].rstrip()
    return above[:-1] + joint(above.split()[-1][:-1], rest[1], known) + rest[1] + rest[2]


def without_notes(page: list[PdfLine], body: float) -> list[PdfLine]:
    """Return a page without the notes in smaller type at the foot of its columns.

    Here and below, ``body`` is the size of most of the text, 0 if no size is known.
    """
    found: list[PdfLine] = []
    column = 0  # where the last one begins
    for number, line in enumerate(page):
        found.append(line)
        if number + 1 == len(page) or page[number + 1].y > line.y + line.size:
            notes = len(found)
            while notes > column and found[notes - 1].size <= _SMALL * body:
                notes -= 1
            begins_note = notes < len(found) and _NOTE.match(found[notes].text)
            if notes > column and len(found) - notes <= (_MOST_LINES if begins_note else _MOST_UNMARKED):
                del found[notes:]
            column = len(found)
    return found


def without_debris(pages: list[list[PdfLine]], body: float) -> list[list[PdfLine]]:
    """Return pages without lines that are no part of a sentence; a line whose sentence goes on in a formula is cut."""
    found: list[list[PdfLine]] = []
    last: list[PdfLine] = []  # the page with the last line that stays
    for page in pages:
        found.append([])
        for line in page:
            if not is_debris(line, body):
                last = found[-1]
                last.append(line)
            elif last and line.math >= _MATH and not _ENDS_SENTENCE.search(last[-1].text):
                last[-1] = last[-1]._replace(is_cut=True)
    return found


def is_debris(line: PdfLine, body: float) -> bool:
    """Whether a line is no part of a sentence: formulas, rows of tables, and lines of a table of contents."""
    text = line.text
    words = _WORD.findall(text)
    if any(dots in text for dots in _LEADERS) or line.cells > 3:
        return True
    if not _LETTERS.search(text):
        # The last word of a paragraph may be a number.
        is_end = line.size == body and line.math == 0 and text[:1].isdigit() and text.endswith((".", ")."))
        return body > 0 and not is_end
    if line.math >= _MATH:
        return len(words) < 4 or line.math >= 0.5
    return len(words) < 2 and len(_FORMULA.findall(text)) >= 2 and 2 * sum(map(len, words)) < len(text)


def prose(blocks: Iterable[Block], body: float) -> list[Block]:
    """Return blocks without captions, notes, authors, keywords, licences, code, and the text of figures and tables.

    A sentence on either side of what is left out is in one block. A document that is mostly code, or whose sizes are
    not known, keeps all but captions, keywords and licences; one of tables and a few labels has no prose.
    """
    blocks = _without_contents(_without_authors(list(blocks)))
    is_code = [block[0].is_code for block, _ in blocks for _ in block]
    drops_code = 2 * sum(is_code) < len(is_code)
    found: list[Block] = []
    was_left_out, cells = False, 0
    for block, is_heading in blocks:
        if block[0].in_table:
            was_left_out, cells = True, cells + _words(block)
            continue
        if not is_heading and _is_left_out(block, body, drops_code=drops_code):
            was_left_out = True
            continue
        if is_heading and _CAPTION.match(block[0].text):
            was_left_out = True
            continue
        if found and not is_heading and not found[-1][1] and _goes_on(found[-1][0], block, was_left_out):
            found[-1] = ([*found[-1][0], *block], False)
        else:
            found.append((block, is_heading))
        was_left_out = False
    words = [_words(block) for block, _ in found]
    is_text = any(
        count >= _FEWEST_WORDS * len(block) or _ENDS_SENTENCE.search(block[-1].text)
        for count, (block, _) in zip(words, found, strict=True)
    )
    return found if is_text or cells <= _MOST_CELLS * sum(words) else []


def _words(block: list[PdfLine]) -> int:
    text = " ".join(line.text for line in block)
    return sum(word[0].isalpha() for word in text.split()) + len(_UNSPACED.findall(text)) // 2


def _without_authors(blocks: list[Block]) -> list[Block]:
    """Leave out what stands between the title and the abstract."""
    lines = 0
    for number, (block, _) in enumerate(blocks):
        if number and _ABSTRACT.match(block[0].text):
            title = next((place for place, (_, found) in enumerate(blocks[:number]) if found), None)
            return blocks if title is None else blocks[: title + 1] + blocks[number:]
        lines += len(block)
        if lines > 60:
            break
    return blocks


def _without_contents(blocks: list[Block]) -> list[Block]:
    """Leave out tables of contents and indexes: up to prose, or to a heading in type as large as theirs."""
    found: list[Block] = []
    size = 0.0  # of the heading of a table of contents that one is in
    for block, is_heading in blocks:
        text = " ".join(line.text for line in block)
        if is_heading and CONTENTS.fullmatch(text):
            size = block[0].size
        elif size:
            ends_in_number = sum(line.text[-1:].isdigit() for line in block)
            begins_text = not is_heading and 2 * ends_in_number < len(block) and _ENDS_SENTENCE.search(text)
            if begins_text or (is_heading and block[0].size >= size and not ends_in_number):
                size = 0.0
        if not size:
            found.append((block, is_heading))
    return found


def _is_left_out(block: list[PdfLine], body: float, *, drops_code: bool) -> bool:
    text = " ".join(line.text for line in block)
    if len(block) <= _MOST_LINES and (_CAPTION.match(text) or _LICENCE.search(text)):
        return True
    if len(block) <= _MOST_LINES // 2 and _KEYWORDS.match(text):
        return True
    if body <= 0:
        return False
    if drops_code and all(line.is_code for line in block):
        return True
    is_small = all(line.size <= _SMALL * body for line in block)
    if is_small and len(block) <= _MOST_LINES and _NOTE.match(text):
        return True
    return _is_figure_text(block, is_small=is_small)


def _is_figure_text(block: list[PdfLine], *, is_small: bool) -> bool:
    """Whether lines are labels of a figure or cells of a table: short, and in smaller type or in rows."""
    rows = sum(line.cells > 1 for line in block)
    if 2 * rows > len(block) and not LIST_ITEM.match(block[0].text):
        return True
    text = " ".join(line.text for line in block)
    words = len(_WORD.findall(text))
    return is_small and words < 4 * len(block) and not _ENDS_SENTENCE.search(text)


def _goes_on(above: list[PdfLine], block: list[PdfLine], was_left_out: bool) -> bool:
    text = block[0].text
    if (
        above[-1].is_cut
        or _ENDS_SENTENCE.search(above[-1].text)
        or LIST_ITEM.match(text)
        or abs(above[-1].size - block[0].size) > 0.5
    ):
        return False
    # A line that is full ends in the middle of a sentence.
    widths = [line.right - line.left for line in above]
    is_full = len(above) > 1 and widths[-1] > 0.9 * max(widths)
    return text[:1].islower() or (was_left_out and is_full)

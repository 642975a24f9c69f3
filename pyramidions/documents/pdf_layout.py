"""The layout of a PDF file: its lines without running lines, as paragraphs and headings."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from pyramidions.documents.pdf_page import RIGHT_TO_LEFT, UNPRINTABLE, PdfLine
from pyramidions.documents.pdf_prose import LIST_ITEM, joined_hyphens, prose, without_debris, without_notes
from pyramidions.text.headings import HeadedText, is_usual_title
from pyramidions.text.normalization import PAUSES, STOPS, UNSPACED

#: Most lines that are taken from either end of a page.
DEPTH = 4
#: A line runs if it ends this many pages (a page number: two) among `NEARBY` consecutive ones. Odd and even pages, and
#: chapters, have headers of their own.
FEWEST, NEARBY = 3, 7
#: A longer line is text, in characters.
LONGEST = 200

#: Share of the height of a page's text at either end in which lines run through pages, and most characters of one.
_EDGE, _SHORT = 0.1, 60
_PAGE_NUMBER = re.compile(r"[\W_]*+(?:page|p\.)?\s*(\d{1,5})(?:\s*(?:of|/)\s*\d{1,5})?[\W_]*", re.IGNORECASE)
_DIGITS_OF_PAGES = 4
_ROMAN = re.compile(r"[ivxlc]+")
_DIGITS = re.compile(r"\d+")
# What a line takes up at once: a word, or two letters of a script without spaces.
_FIRST = re.compile(rf"[{UNSPACED}]{{1,2}}|\S+")
_CUT_HANGUL = re.compile("(?<=[\uac00-\ud7a3])\n(?=[\uac00-\ud7a3])")
#: Type is larger, and lines stand further apart, from these ratios on.
_LARGER, _MUCH_LARGER, _APART = 1.09, 1.2, 1.5
# Bold headings may be smaller than the text by this ratio.
_SMALLER = 1.12
#: Lines of that many words show their size: type that differs by this ratio is other type.
_FEWEST_WORDS, _OTHER = 4, 1.05
#: Most characters of a short word; by less than this share of the size of their type, the ends of even lines differ.
_SHORT_WORD, _EVEN = 4, 0.3
_STOPS = tuple(STOPS + ":：")
_MOST_LINES, _MOST_WORDS, _DEEPEST = 3, 20, 6
_WORD = re.compile(rf"[{UNSPACED}]{{2}}|[^\W\d_]{{2,}}")
# A heading may be a question.
_ENDS_SENTENCE = tuple({*STOPS, *PAUSES} - set("!?！？؟"))
_ABSTRACT, _AFTER_HEADING = re.compile(r"(Abstract|ABSTRACT|Summary) ?[.:—–-]? ?(?=[A-Z])"), " .:—–-"
_NUMBERED = re.compile(r"\d{1,2}(\.\d{1,2})+\.? [^\W\d_]")


_Block = list[PdfLine]


def without_running_lines(pages: list[list[PdfLine]]) -> list[list[PdfLine]]:
    """Return pages without the lines that run through them, whatever digits are in them: up to `DEPTH` at either end.

    Numbers alone go if they count up with the pages, and with words beside them on `FEWEST`. Lines of more than
    `LONGEST` characters stay, and pages that are alike beyond or lose a third of their text with four lines.
    """
    whole, pages, largest = pages, [list(page) for page in pages], _LARGER * _body_size(pages)
    for _ in range(DEPTH):
        running = _running(pages, largest)
        for number, page in enumerate(pages):
            for end in (0, -1):
                if page and not running.isdisjoint(_keys(page[end], number, largest)):
                    page.pop(end)
    # Pages that are alike beyond, at both ends or in a long line, or that lose much, are text.
    running = {key for key in _running(pages, largest) if key[0]}
    found = _without_lines_at_edges(pages)
    is_empty = not any(map(_texts, found))
    for number, page in enumerate(pages):
        ends = [line for line in page[:1] + page[-1:] if not running.isdisjoint(_keys(line, number, largest))]
        is_alike = len(ends) > 1 or any(len(line.text) > _SHORT for line in ends)
        given, left = _texts(whole[number]), _texts(found[number])
        loses_much = len(given) - len(left) > 3 - (not left) and 3 * len("".join(left)) < 2 * len("".join(given))
        if is_alike or loses_much or (is_empty and given):
            found[number] = whole[number]
    return found


def _texts(page: list[PdfLine]) -> list[str]:
    """Return the texts of lines with words, but for numbers of pages."""
    return [line.text for line in page if any(map(str.isalpha, line.text)) and not _PAGE_NUMBER.fullmatch(line.text)]


def _without_lines_at_edges(pages: list[list[PdfLine]]) -> list[list[PdfLine]]:
    """Return pages without short lines of the same words, size and height, near the top or the bottom of near pages."""
    seen: dict[PdfLine, dict[int, None]] = defaultdict(dict)
    for number, page in enumerate(pages):
        low, *_, high = sorted(line.y for line in page) if len(page) > 1 else (0.0, 0.0)
        edge = _EDGE * (high - low)
        for line in page:
            if len(line.text) <= _SHORT and edge > 0 and not low + edge < line.y < high - edge:
                seen[_placed(line)][number] = None
    running = {key for key, numbers in seen.items() if _are_near(list(numbers), FEWEST)}
    return [[line for line in page if _placed(line) not in running] for page in pages]


def _placed(line: PdfLine) -> PdfLine:
    return PdfLine(line.text, round(line.size), y=round(line.y))


# What is the same on all pages that a line runs through; the first part of that of a page number is empty.
_Key = tuple[str, int]


def _running(pages: list[list[PdfLine]], largest: float) -> set[_Key]:
    seen: dict[_Key, list[int]] = defaultdict(list)
    for number, page in enumerate(pages):
        for key in {key for line in (*page[:1], *page[-1:]) for key in _keys(line, number, largest)}:
            seen[key].append(number)
    return {key for key, numbers in seen.items() if _are_near(numbers, FEWEST if key[0] else 2)}


def _are_near(numbers: list[int], fewest: int) -> bool:
    return any(last - first < NEARBY for first, last in zip(numbers, numbers[fewest - 1 :], strict=False))


def _keys(line: PdfLine, page: int, largest: float) -> Iterator[_Key]:
    text = " ".join(line.text.split())
    if len(text) > LONGEST:
        return
    if number := _PAGE_NUMBER.fullmatch(text):
        yield "", int(number[1]) - page
        return
    words = "i" if _ROMAN.fullmatch(text) else _DIGITS.sub("0", text)
    if any(map(str.isalpha, words)):
        yield words, round(line.size)
        # The title of a section may change from page to page, beside their numbers. A heading in larger type, beside
        # its own number, is none.
        for end in (0, -1) if line.size <= largest else ():
            if (beside := text.split()[end]).isdecimal() and len(beside) <= _DIGITS_OF_PAGES:
                yield f"beside {end}", int(beside) - page


def laid_out(pages: list[list[PdfLine]]) -> HeadedText:
    """Return the prose of pages, one line of theirs a line, with an empty line between blocks, and its headings.

    A sentence goes on over pages. Short blocks in larger or bold type are headings; the largest type is the highest.
    """
    body = _body_size(pages)
    pages = [[line._replace(text=UNPRINTABLE.sub("", line.text)) for line in page] for page in pages]
    pages = joined_hyphens(without_debris([without_notes(page, body) for page in pages], body))
    blocks = [(block, _is_heading(block, body)) for block in _blocks(pages, body)]
    types = sorted({_type(block[0]) for block, is_heading in blocks if is_heading}, reverse=True)
    levels = {found: min(level, _DEEPEST) for level, found in enumerate(types, 1)}
    # One space at the end of a line may be by chance.
    shows_words = sum(line.text.endswith(" ") for page in pages for line in page) > 1
    parts: list[str | int] = []
    for block, is_heading in prose(blocks, body):
        if is_heading:
            parts += [levels[_type(block[0])], " ".join(line.text.strip() for line in block)]
        else:
            text = "\n".join(line.text for line in block)
            text = _CUT_HANGUL.sub("", text) if shows_words else text
            parts.append(text.replace(" \n", "\n").rstrip())
        parts.append("\n\n")
    return HeadedText.of(parts[:-1])


def _body_size(pages: list[list[PdfLine]]) -> float:
    """Return the size of most of the text."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=sizes.__getitem__, default=0.0)


def _blocks(pages: list[list[PdfLine]], body: float) -> Iterator[_Block]:
    gaps = [above.y - line.y for page in pages for above, line in pairwise(page) if above.y > line.y]
    wide = _APART * median(gaps) if gaps else 0.0
    block: _Block = []
    margin = 0.0  # the right end of the block
    for page in pages:
        for number, line in enumerate(page):
            gap = page[number - 1].y - line.y if number else 0.0
            # A column or a page begins with a gap that nobody sees.
            is_apart = gap > wide or (line.run_in > 0 and gap <= 0)
            right = max(margin, line.right if len(block) == 1 else 0.0)
            ends = block and number and _ends_early(page, number, right, body)
            if ends or (block and _begins_block(block[-1], line, is_apart=is_apart)):
                yield block
                block, margin = [], 0.0
            if not block and (heading := _leading_heading(line)):
                yield [line._replace(text=heading.rstrip(_AFTER_HEADING), is_bold=True)]
                # Most of the line may have been the heading: its text goes on in the line below.
                below = page[number + 1] if number + 1 < len(page) else line
                line = line._replace(text=line.text[len(heading) :].lstrip(), size=below.size)
            block.append(line)
            margin = max(margin, line.right)
    if block:
        yield block


def _ends_early(page: list[PdfLine], number: int, margin: float, body: float) -> bool:
    """Whether a line has room before its margin for the first word of the line below, which begins anew.

    Beside a picture, lines are even, or have room and go on in lower case: there, and behind a short word, as articles
    are, it takes the end of a sentence or an item.
    """
    above, line = page[number - 1], page[number]
    stands_out = line.is_bold or line.size > _LARGER * body
    if stands_out or _goes_on(line) or RIGHT_TO_LEFT.search(line.text) or not _has_room(above, line, margin):
        return False
    last, even = (above.text.split() or [""])[-1], _EVEN * line.size
    if LIST_ITEM.match(line.text) or (len(last) > _SHORT_WORD and last.endswith(_STOPS)):
        return True
    return not (len(last) <= _SHORT_WORD and last.isalpha() and last.islower()) and not any(
        abs(first.right - below.right) < even < margin - below.right
        or (_goes_on(below) and _has_room(first, below, margin))
        for first, below in pairwise(page[max(number - 2, 0) : number + 2])
    )


def _goes_on(line: PdfLine) -> bool:
    return line.text.lstrip()[:1].islower()


def _has_room(above: PdfLine, line: PdfLine, margin: float) -> bool:
    first = _FIRST.match(line.text)
    width = (line.right - line.left) * (first.end() if first else 0) / max(len(line.text), 1)
    return first is not None and above.y > line.y and margin - above.right > width + line.size


def _leading_heading(line: PdfLine) -> str:
    """Return the heading that a line begins with; "" if there is none."""
    if line.run_in and len(line.text[: line.run_in].split()) <= _MOST_WORDS:
        return line.text[: line.run_in]
    abstract = _ABSTRACT.match(line.text)
    return abstract[0] if abstract else ""


def _begins_block(above: PdfLine, line: PdfLine, *, is_apart: bool) -> bool:
    if above.is_cut or above.in_table != line.in_table:
        return True
    words, words_above = len(_WORD.findall(line.text)), len(_WORD.findall(above.text))
    smaller, larger = sorted([above.size, line.size])
    # Captions and notes may go before the rest of a sentence.
    if min(words, words_above) >= _FEWEST_WORDS and larger > _OTHER * smaller:
        return True
    if is_usual_title(line.text) or is_usual_title(above.text):
        return True
    goes_on = _goes_on(line)
    if is_apart and words > 1 and not goes_on:
        return True
    # Symbols and numbers of formulas have sizes of their own.
    if not (words and words_above):
        return False
    if goes_on:
        return above.size > _MUCH_LARGER * line.size
    return line.is_bold != above.is_bold or larger > _LARGER * smaller


def _is_heading(block: _Block, body: float) -> bool:
    first, text = block[0], " ".join(line.text for line in block).rstrip()
    # Bold cells of tables are smaller than the body in most cases.
    stands_out = first.size > _LARGER * body or (first.is_bold and first.size * _SMALLER > body)
    is_numbered = _NUMBERED.match(text) is not None
    ends = text.endswith(_ENDS_SENTENCE) and not (is_numbered and text.endswith("."))
    is_short = len(block) <= _MOST_LINES and len(text.split()) <= _MOST_WORDS and not ends
    stands_out = stands_out or (len(block) == 1 and is_usual_title(text))
    return body > 0 and stands_out and is_short and _WORD.search(text) is not None


def _type(line: PdfLine) -> tuple[float, bool]:
    return round(line.size, 1), line.is_bold

"""The lines of a page of a PDF file, from the places of its characters."""

import ctypes
import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, pairwise
from math import hypot
from statistics import median
from typing import Any, NamedTuple

from pyramidions.documents.formulas import marked, on_the_line

#: A space stands between characters that are this far apart, and cells of a table or columns that far, as a share of
#: the size of the type.
SPACE, WIDE = 0.12, 1.5
_HANGUL = re.compile(r"[\uac00-\ud7a3]\s+$")
#: Most characters of raised text in type of the size of the line.
_MOST_RAISED = 8
#: Most characters of a page that are read.
MOST_CHARACTERS = 200_000

#: A table has that many rows, of that many cells, whose distance is less than so many times the size of the type.
_FEWEST, _NEAR = 3, 6.0
# A row is at one height, the gap behind a bullet is that wide, and prose as long, likewise.
_LEVEL, _BEHIND, _LINE = 0.3, 0.4, 12.0
# Kinds of characters that may be bullets.
_SIGNS = {"So", "Sm", "Sc", "Sk", "Co"}
# What stands between cells that one operator draws, and the mark of an item of a list.
_BETWEEN, _ITEM = "   ", re.compile(r"\(?\w{1,3}[.)]")

_BOLD = re.compile(r"bold|black|heavy|cmbx|cmb\d|cmssbx|sfbx|ecbx|demi|medi(?!um)", re.IGNORECASE)
_MATH = re.compile(
    "cmmi|cmsy|cmex|cmbsy|msam|msbm|eufm|math|symbol|rsfs|txmi|txsy|pxmi|rmtmi|mtmi|mtsy|mtex|esint|dingbat|wingding",
    re.IGNORECASE,
)
_CODE = re.compile(
    "courier|mono|cmtt|sftt|ectt|cmsltt|cmitt|tctt|consol|typewriter|inconsolata|menlo|lucidasanst", re.I
)
#: Characters that no script has: control characters and those of private use.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
#: Hebrew, Syriac and Arabic, whose letters may be stored in the order of the page.
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
# What stands for a code: pdfium puts U+0002 in place of a hyphen at a line's end. Fonts that do not name their letters
# have TeX's codes, for ligatures in its older and its newer encoding.
_CODES = {
    **dict.fromkeys((2, 0xAD), "-"),
    **{first + place: letters for first in (11, 27) for place, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl"))},
}
# macOS names two ligatures of TeX's text fonts so.
_TEXT = re.compile(r"(?:^|\+)cm(?:r|bx|b|ti|sl|ss|csc)\d", re.IGNORECASE)
_CODES_OF_TEXT = {**_CODES, 0x21B5: "ff", 0: "ffi"}
# Spacing accents, which TeX draws over a letter, and the combining ones.
_ACCENTS = dict(zip("´`¨ˆ˜¸ˇ¯˚˙", "\u0301\u0300\u0308\u0302\u0303\u0327\u030c\u0304\u030a\u0307", strict=True))


class PdfLine(NamedTuple):
    """A line of a page."""

    text: str
    size: float = 0.0  # of its type, in points, as most of its characters have it; 0 if unknown
    is_bold: bool = False  # all of it, but for formulas and code
    y: float = 0.0  # height of its baseline above the bottom of the page, in points
    left: float = 0.0  # end of the line, in points from the left
    right: float = 0.0  # likewise
    cells: int = 1  # parts that wide gaps separate
    math: float = 0.0  # share of its characters in type for formulas
    is_code: bool = False  # it is in type of fixed width
    run_in: int = 0  # characters of a heading in bold type that ends in a full stop, before other type; 0 without one
    is_cut: bool = False  # its sentence goes on in a formula that was left out
    in_table: bool = False  # it lies among rows of cells


class Font(NamedTuple):
    """What the name of a font says."""

    is_bold: bool = False
    is_math: bool = False
    is_code: bool = False
    is_tex: bool = False


class Run(NamedTuple):
    """Characters that one operator draws, in one font, on one baseline; or that stand in one box of a picture."""

    text: str
    # left, right: ends, in points from the left.
    left: float
    right: float
    y: float  # height of the baseline above the bottom of the page, in points
    size: float  # of the type, in points
    turn: int = 0  # quarter turns to the left
    font: Font = Font()


def page_lines(page: Any) -> list[PdfLine]:
    """Return the lines of a page of pypdfium2 as they are drawn, or column by column, but for text that is turned."""
    runs = list(_runs(page))
    turns: Counter[int] = Counter()
    for run in runs:
        turns[run.turn] += len(run.text)
    turn = max(turns, key=turns.__getitem__, default=0)
    lines: list[list[Run]] = []
    for run in runs:
        if run.turn != turn:
            continue
        # Pages that are turned draw some lines from the right; scripts without cases may run so.
        is_before = lines and abs(lines[-1][0].left - run.right) < 2 and run.text != run.text.upper()
        if lines and _continues(lines[-1], run):
            lines[-1].append(run)
        elif is_before and _continues([run], lines[-1][0]):
            lines[-1].insert(0, run)
        elif run.text.strip():
            lines.append([run])
    rows = [row for part in _columns(lines) for row in part]
    signs, in_table = Counter(map(_sign, rows)), set(map(id, _table_lines(rows)))
    for row in rows:
        if (sign := _sign(row)) and signs[sign] >= _FEWEST:
            row[0] = row[0]._replace(text="• " + row[0].text.lstrip()[1:])
    found = [_line(row)._replace(in_table=id(row) in in_table) for row in rows]
    return [line for line in found if line.text]


def _sign(line: list[Run]) -> tuple[str, int] | None:
    """Return a sign that may be a bullet before the first word of a line, and its place."""
    first, word, *_ = [*" ".join(run.text for run in line[:2]).split(), "", ""]
    # A name in a formula is in type for signs as well, but no gap is behind it.
    is_apart = line[0].font.is_math and line[-1] != line[0] and line[1].left - line[0].right > _BEHIND * line[0].size
    is_sign = len(first) == 1 and (is_apart or unicodedata.category(first) in _SIGNS) and first not in "=<>©"
    return (first, round(line[0].left)) if is_sign and word[:1].isalpha() else None


def _table_lines(lines: list[list[Run]]) -> Iterator[list[Run]]:
    """Yield the lines of tables, which are rows of cells near each other, and what lies among them but prose."""
    falling = sorted((line for line in lines if not _is_prose(line)), key=lambda line: -line[0].y)
    rows = [sorted(chain(*row), key=lambda run: run.left) for row in _grouped(falling, _LEVEL)]
    # Lines in columns, and words between wide gaps, begin in lower case.
    rows = [row for row in rows if sum(not cell[0].islower() for cell in _cells(row)) >= _FEWEST]
    tables = [table for table in reversed(_grouped(rows, _NEAR)) if len(table) >= _FEWEST]
    tops = [table[0][0].y + 1.5 * table[0][0].size for table in tables]
    ends = [(median(row[0].left for row in table), median(row[-1].right for row in table)) for table in tables]
    for line in lines:
        if (at := bisect(tops, line[0].y)) < len(tables) and not _is_prose(line, most=1):
            last, (left, right) = tables[at][-1][0], ends[at]
            if last.y - 1.5 * last.size < line[0].y and line[0].left < right and line[-1].right > left:
                yield line


def _grouped(lines: list[list[Run]], most: float) -> list[list[list[Run]]]:
    """Return falling lines in groups without a distance of more than so many times the size of their type."""
    ends = [n for n in range(1, len(lines)) if lines[n - 1][0].y - lines[n][0].y > most * lines[n][0].size]
    return [lines[first:last] for first, last in pairwise(sorted({0, *ends, len(lines)}))]


def _cells(line: list[Run]) -> list[str]:
    """Return the texts between wide gaps, without marks of lists."""
    gaps = [run.left - last.right > WIDE * max(run.size, last.size) for last, run in pairwise([line[0], *line])]
    cells = "".join(_BETWEEN * gap + run.text for gap, run in zip(gaps, line, strict=True)).split(_BETWEEN)
    return [cell.strip() for cell in cells if any(map(str.isalnum, cell)) and not _ITEM.fullmatch(cell.strip())]


def _is_prose(line: list[Run], most: int = 2) -> bool:
    """Whether ``most`` cells are as long as a short line, and half of the words have small letters, or no case."""
    cells = _cells(line)
    if len(cells) > most or line[-1].right - line[0].left < _LINE * line[0].size:
        return any(map(RIGHT_TO_LEFT.search, cells))
    words = [word for cell in cells if len(cell.split()) > 5 or not cell.isascii() for word in cell.split()]
    return 2 * sum(word[0].isalpha() and not word[0].isupper() for word in words) >= max(len(words), 1)


def _runs(page: Any) -> Iterator[Run]:
    import pypdfium2.raw as pdfium

    text_page = page.get_textpage()
    try:
        handle, box, matrix = text_page.raw, pdfium.FS_RECTF(), pdfium.FS_MATRIX()
        x, y = ctypes.c_double(), ctypes.c_double()
        drawn, begin = None, Run("", 0, 0, 0, 0)
        characters: list[tuple[str, float, float]] = []
        count = min(pdfium.FPDFText_CountChars(handle), MOST_CHARACTERS)
        for index in range(count):
            code = pdfium.FPDFText_GetUnicode(handle, index)
            found = pdfium.FPDFText_GetTextObject(handle, index)
            if not found or not pdfium.FPDFText_GetLooseCharBox(handle, index, box):
                continue
            place = ctypes.addressof(found.contents)
            if place != drawn:
                yield from _joined(begin, characters)
                drawn, characters = place, []
                pdfium.FPDFText_GetMatrix(handle, index, matrix)
                pdfium.FPDFText_GetCharOrigin(handle, index, x, y)
                size = pdfium.FPDFText_GetFontSize(handle, index) * hypot(matrix.c, matrix.d)
                across = abs(matrix.b) > abs(matrix.a)
                turn = (1 if matrix.b > 0 else 3) if across else (0 if matrix.a >= 0 else 2)
                begin = Run("", 0, 0, (y.value, -x.value, -y.value, x.value)[turn], size, turn, _font(found))
            ends = (box.left, box.right), (box.bottom, box.top), (-box.right, -box.left), (-box.top, -box.bottom)
            left, right = ends[begin.turn]
            # pdfium puts a space without width where it supposes one.
            if right > left or code != 32:
                codes = _CODES_OF_TEXT if begin.font.is_tex else _CODES
                letter = chr(code) if begin.font.is_math else codes.get(code, chr(code))
                if 0xDC00 <= code < 0xE000 and characters and "\ud800" <= characters[-1][0] < "\udc00":
                    # pdfium gives the halves of a letter beyond U+FFFF one after the other.
                    half, left, _ = characters.pop()
                    letter = (half + letter).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
                characters.append((letter, left, right))
        yield from _joined(begin, characters)
    finally:
        text_page.close()


def _font(drawn: Any) -> Font:
    import pypdfium2.raw as pdfium

    font = pdfium.FPDFTextObj_GetFont(drawn)
    buffer = ctypes.create_string_buffer(256)
    length = pdfium.FPDFFont_GetBaseFontName(font, buffer, len(buffer)) if font else 0
    return _named(buffer.value if length else b"")


@lru_cache(1024)
def _named(name: bytes) -> Font:
    text = name.decode("latin-1")
    return Font(*(bool(kind.search(text)) for kind in (_BOLD, _MATH, _CODE, _TEXT)))


def _joined(begin: Run, characters: list[tuple[str, float, float]]) -> Iterator[Run]:
    if not characters:
        return
    text: list[str] = []
    end, space = characters[0][1], SPACE * begin.size
    accent = ""
    for character, left, right in characters:
        if left - end > space:
            text.append(" ")
        elif left < end - 20 * begin.size:  # one operator draws several lines
            yield begin._replace(text=_spelled("".join(text)), left=characters[0][1], right=end)
            return
        if character in _ACCENTS:
            accent = character
        elif accent:
            text.append(character + _ACCENTS[accent] if character.isalpha() and left < end else accent + character)
            accent = ""
        else:
            text.append(character)
        end = right
    text.append(accent)
    yield begin._replace(text=_spelled("".join(text)), left=characters[0][1], right=end)


def _spelled(text: str) -> str:
    """Spell out ligatures and compose accents; other forms of a character, as in x², stay."""
    if text.isascii():
        return text
    return unicodedata.normalize(
        "NFC", "".join(unicodedata.normalize("NFKC", c) if "ﬀ" <= c <= "ﬆ" else c for c in text)
    )


def _continues(line: list[Run], run: Run) -> bool:
    last = line[-1]
    size = max(last.size, run.size, line[0].size)
    # Large brackets and signs of sums hang from a baseline of their own.
    most = (1.3 if run.font.is_math or last.font.is_math else 0.5) * size
    # A subscript begins where the superscript above it does.
    back = 4.0 if max(run.size, last.size) < 0.85 * line[0].size else 0.6
    return min(abs(run.y - line[0].y), abs(run.y - last.y)) < most and last.right - back * size < run.left


def _marked(line: list[Run], last: Run, run: Run) -> str:
    """Return characters with marks if they are raised or lowered, by less if they are small than if they are not."""
    size, height = line[0].size, run.y - line[0].y
    is_placed = run.size < 0.85 * size and abs(height) > (0.15 if height > 0 else 0.08) * size
    # A few characters behind a word or a number; a cell stands apart.
    joins = len(run.text) <= _MOST_RAISED and not last.text[-1:].isspace() and run.left - last.right < SPACE * size
    is_placed = is_placed or (joins and 0.25 * size < abs(height) < size)
    return marked("sup" if height > 0 else "sub", run.text) if is_placed else run.text


def _columns(lines: list[list[Run]]) -> Iterator[list[list[Run]]]:
    """Yield lines as they are drawn; where a page draws its rows across two columns, yield one column at a time."""
    gaps = [
        (before.right, after.left)
        for line in lines
        for before, after in pairwise(line)
        if after.left - before.right > max(before.size, after.size)
    ]
    centre = _gutter(gaps)
    crossed = [line for line in lines if line[0].left < centre < line[-1].right]
    parted = [line for line in crossed if any(a.right <= centre <= b.left for a, b in pairwise(line))]
    words = sum(len(run.text.split()) for line in parted for run in line)
    # Rows of a table have fewer words than rows of two columns.
    if len(parted) < 10 or len(parted) < 0.8 * len(crossed) or words < 8 * len(parted):
        yield lines
        return
    left: list[list[Run]] = []
    right: list[list[Run]] = []
    for line in lines:
        if line in parted or not line[0].left < centre < line[-1].right:
            for part, inside in (
                (left, [run for run in line if run.left < centre]),
                (right, [run for run in line if run.left >= centre]),
            ):
                if inside:
                    part.append(inside)
        else:
            yield left
            yield right
            yield [line]
            left, right = [], []
    yield left
    yield right


def _gutter(gaps: list[tuple[float, float]]) -> float:
    """Return the place that most gaps cover."""
    changes = sorted([(left, 1) for left, _ in gaps] + [(right, -1) for _, right in gaps])
    best, place, depth = 0, 0.0, 0
    for (at, change), (following, _) in pairwise(changes):
        depth += change
        if depth > best:
            best, place = depth, (at + following) / 2
    return place


def _line(runs: list[Run]) -> PdfLine:
    sizes: Counter[float] = Counter()
    for run in runs:
        sizes[run.size] += len(run.text.strip())
    cells = 1 + sum(run.left - last.right > WIDE * max(run.size, last.size) for last, run in pairwise(runs))
    seen = [run for run in runs if run.text.strip()] or runs
    letters = sum(sizes.values()) or 1
    size = max(sizes, key=sizes.__getitem__)
    return PdfLine(
        _text(runs),
        size,
        _is_bold(seen),
        next((run.y for run in seen if run.size == size), seen[0].y),
        runs[0].left,
        runs[-1].right,
        cells,
        sum(len(run.text.strip()) for run in seen if run.font.is_math) / letters,
        all(run.font.is_code for run in seen),
        _run_in(seen),
    )


def _is_bold(runs: list[Run]) -> bool:
    """Whether all runs are bold, but for formulas and code among them."""
    bold = [run for run in runs if run.font.is_bold]
    others = [run for run in runs if not run.font.is_bold]
    return _letters(bold) >= _letters(others) and all(run.font.is_math or run.font.is_code for run in others)


def _letters(runs: list[Run]) -> int:
    return sum(len(run.text.strip()) for run in runs)


def _run_in(runs: list[Run]) -> int:
    """Return the length of a bold beginning that ends in a full stop, before words in other type."""
    bold = next((number for number, run in enumerate(runs) if not run.font.is_bold and not run.font.is_code), 0)
    # A bold word may follow, in type of another size.
    ends = (n for n in range(bold, 0, -1) if n == bold or runs[n].size != runs[n - 1].size)
    last = next((n for n in ends if runs[n - 1].text.rstrip().endswith(".") and _is_bold(runs[:n])), 0)
    return len(_text(runs[:last]))


def _text(runs: list[Run]) -> str:
    text = ""
    for last, run in pairwise([runs[0], *runs] if runs else []):
        gap = run.left - last.right
        part = _marked(runs, last, run)
        part = UNPRINTABLE.sub("", part) if run.font.is_math else part  # parts of brackets
        text += " " * (gap > SPACE * min(run.size, last.size)) + part
    # Where Korean files draw spaces at the ends of lines, a line without one cuts a word.
    space = " " if text[-1:].isspace() and _HANGUL.search(text) else ""
    return " ".join(on_the_line(text).split()) + space

"""The one normalisation and the one sentence splitter that every text goes through.

Prepare, interactive use and both sides of scoring call these functions and no others, so that a document reads the same
wherever it comes in. What people read keeps its characters (`readable`); models and comparisons see `normalize`.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from importlib.metadata import version
from itertools import accumulate, chain, islice, pairwise

import sentencex

from pyramidions.text.sentence_joins import goes_on

SPLITTER = f"sentencex {version('sentencex')}, marks of lists masked, joined behind abbreviations"
NORMALISATION = "NFKC, powers as 10^6"

# Control characters that are not white space, lone surrogates (JSON may hold them, UTF-8 may not), and
# format characters that nobody sees: soft hyphen, zero-width space, direction marks, byte-order mark, tags.
# The two zero-width joiners stay, since some scripts spell with them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0001\U000e0020-\U000e007f]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
#: What ends a sentence in any script: full stops of Latin, Chinese, Indic, Arabic and Urdu texts, and the like.
STOPS = ".!?…。！？।؟۔።፧։။៕។།༎"
#: Signs behind which a sentence of any script goes on.
PAUSES = ":;,、，：；،؛"
#: Scripts that write no spaces, for the brackets of a pattern: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
_OPENING, _CLOSING, _FULL_STOPS = "「『（(《〈【“‘", "」』）)》〉】”’", "。！？"
# Full stops of Khmer and Tibetan, which end a sentence before a space, too.
_BARS = "។៕།༎"
_QUOTE_OR_STOP = re.compile(f'[{_OPENING}{_CLOSING}"{_FULL_STOPS}!?]|[{_BARS}](?: ?[{_BARS}])*')
#: What follows a full stop in its sentence, and the end of the text.
_NO_BEGINNING = ("", " ", *_CLOSING, *_FULL_STOPS)
_UNSPACED_BEGINNING = re.compile(f"[{UNSPACED}「『]")
_LONGEST_QUOTATION = 400  # characters; a longer one was not closed
#: Chinese characters, kana and their marks, for the brackets of a pattern.
WIDE = "\u2e80-\u2fdf\u3001-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff65\U00020000-\U0003ffff"
# A line end between them; a line behind an ideographic space begins a paragraph.
_UNSPACED_BREAK = re.compile(rf"(?<=[{WIDE}])[ \t\r]*\n[ \t]*(?=[{WIDE}“‘…—])|(?<=[”’…—])[ \t\r]*\n[ \t]*(?=[{WIDE}])")
# A line end within a long line of Thai, Lao, Burmese or Khmer, which write spaces between phrases only.
_WORDLESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17d3"
_WORDLESS_BREAK = re.compile(rf"(?<=[{_WORDLESS}])(?=\s)(?<=[^\n]{{51}})[ \t\r]*\n[ \t]*(?=[{_WORDLESS}])")
# What NFKC spells with digits: raised and lowered ones with their signs; others, such as ½, ⑥ and ㎡.
_RAISED, _LOWERED = "\xb2\xb3\xb9\u2070\u2074-\u207b", "\u2080-\u208b"
_OTHER = (
    "\xbc-\xbe\u2150-\u215f\u2189\u2460-\u249b\u24ea\u3251-\u325f\u32b1-\u32cb\u3358-\u3370\u3378\u3379\u339f-\u33af"
    "\u33e0-\u33fe\U0001f100-\U0001f10a"
)
# Behind a digit, NFKC would make 106 of 10⁶, and 21/2 of 2½.
_APART = [
    (re.compile(rf"(?<=[\d{_LOWERED}{_OTHER}])(?=[{_RAISED}])"), "^"),
    (re.compile(rf"(?<=[\d{_RAISED}{_OTHER}])(?=[{_LOWERED}])"), "_"),
    (re.compile(rf"(?<=[\d{_RAISED}{_LOWERED}{_OTHER}])(?=[{_OTHER}])|(?<=[{_RAISED}{_LOWERED}{_OTHER}])(?=\d)"), " "),
]
_SPELLED_WITH_DIGITS = re.compile(f"[{_RAISED}{_LOWERED}{_OTHER}]")
# NFKC makes the sign for subtraction of a minus, and the slash of fractions of ½.
_MINUS, _SLASH = str.maketrans("\u207b\u208b", "--"), "\u2044"
_ELLIPSIS = "\u2026"
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_MARK = re.compile(r"[^\w\s]")
_MOST_MARKS = 8000  # more than in 100,000 characters of a paper
# The library ends no sentence in a paragraph that begins with such a mark. A pattern is found faster if
# it begins with a character.
_LIST_MARK = re.compile(r"\((?<!\S\()(?=(?:[0-9a-z]{1,4}|[A-Z]|[IVX]{2,5})\) )")


def normalize(text: str) -> str:
    """Bring a text to the one form that models read and that is compared.

    That is NFKC, without control characters, on one line with single spaces and no space at either end. Numbers stay
    apart: 10⁶ is 10^6, 2½ is 2 1/2. Lone surrogates go. Normalising it again changes nothing.
    """
    # Removal comes first: taking a character from between two others may leave a pair that NFKC composes.
    text = _visible(text)
    if not text.isascii():
        # Few texts hold one, and looking for all places takes ten times as long as the rest.
        if _SPELLED_WITH_DIGITS.search(text):
            for place, mark in _APART:
                text = place.sub(mark, text)
            text = text.translate(_MINUS)
        text = unicodedata.normalize("NFKC", text).replace(_SLASH, "/")
    return " ".join(text.split())


def readable(text: str) -> str:
    """Put a text on one line as people read it; ligatures are spelled out. What `normalize` makes of it stays."""
    text = _visible(text)
    if not text.isascii():
        text = _LIGATURE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), unicodedata.normalize("NFC", text))
    return " ".join(text.split())


def _visible(text: str) -> str:
    # Most lines are plain, and that is a cheaper test.
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub("", text)


def joined_lines(text: str) -> str:
    """Put the lines of a paragraph on one, with a space between them, but none in scripts without spaces."""
    return " ".join(unbroken(text).split())


def unbroken(text: str) -> str:
    """Take the line ends in scripts without spaces out of a text."""
    return text if text.isascii() else _WORDLESS_BREAK.sub("", _UNSPACED_BREAK.sub("", text))


def one_line(text: str) -> str:
    """Put a text on one line with single spaces; its characters stay, but for lone surrogates.

    Tokenizers that other programs made read such a text as those programs do.
    """
    return " ".join(_SURROGATES.sub("", text).split())


def split_sentences(text: str, language: str = "en", *, spaced: bool = True) -> list[str]:
    """Split a text into sentences, none of them empty.

    The library's ends count, but for those behind abbreviations and ordinals (`goes_on`). The text is normalised first;
    joining the sentences with single spaces gives the normalised text back, if sentences of the language are
    ``spaced``: a boundary without a space is none then.
    """
    return split_line(normalize(text), language, spaced=spaced)


def split_lines(text: str) -> list[str]:
    """Split a text into its lines, normalised, none of them empty."""
    return [line for line in map(normalize, text.splitlines()) if line]


def split_readable(text: str, language: str = "en") -> list[str]:
    """Split a text into sentences as `split_sentences` does, but as people read them: see `readable`."""
    text = readable(text)
    if text.isascii():
        return split_line(text, language)
    # The splitter knows the usual forms of marks. Those of one character leave places as they are; "..." does not.
    usual = text.translate(_USUAL).replace(_ELLIPSIS, "...")
    ellipses = [match.start() for match in re.finditer(_ELLIPSIS, text)]
    begins = [place + 2 * number for number, place in enumerate(ellipses)]

    def place(usual_place: int) -> int:
        before = bisect_left(begins, usual_place)
        is_inside = before > 0 and usual_place < begins[before - 1] + 3
        return ellipses[before - 1] + 1 if is_inside else usual_place - 2 * before

    sentences, end = [], 0
    for sentence in split_line(usual, language):
        begin = usual.index(sentence, end)
        end = begin + len(sentence)
        sentences.append(text[place(begin) : place(end)])
    return sentences


class _UsualForms(dict[int, str]):
    """The NFKC form of a character by its code, where that is one character."""

    def __missing__(self, code: int) -> str:
        form = unicodedata.normalize("NFKC", chr(code))
        self[code] = form if len(form) == 1 else chr(code)
        return self[code]


_USUAL = _UsualForms()


def split_line(text: str, language: str = "en", *, spaced: bool = True) -> list[str]:
    """Split a text of one line with single spaces into sentences, as it stands; see `split_sentences`."""
    sentences: list[list[str]] = []
    ended = True
    segments = _segments(text, language)
    for piece in segments if spaced else chain.from_iterable(map(ended_by_full_stops, segments)):
        # A boundary without a space, as in `index.php?page`, is none.
        begins = ended or not spaced or piece.startswith(" ")
        if begins and not (sentences and goes_on(sentences[-1], piece, language)):
            sentences.append([piece])
        else:
            sentences[-1].append(piece)
        ended = piece.endswith(" ")
    return [sentence for pieces in sentences if (sentence := "".join(pieces).strip())]


def ended_by_full_stops(text: str) -> Iterator[str]:
    """Cut behind the full stops of scripts without spaces, outside of quotes and brackets."""
    begun, opened = 0, list[int]()
    # Most texts have no such marks.
    for match in () if text.isascii() else _QUOTE_OR_STOP.finditer(text):
        mark, end = match[0], match.end()
        following = text[end : end + 1]
        if opened and end - opened[0] > _LONGEST_QUOTATION:
            opened = []
        if mark in _OPENING or (mark == '"' and not opened):
            opened.append(end)
        elif mark in _CLOSING or mark == '"':
            del opened[-1:]
        elif opened or following in (("",) if mark[0] in _BARS else _NO_BEGINNING):
            continue
        elif mark not in "!?" or _UNSPACED_BEGINNING.match(following):
            yield text[begun:end]
            begun = end
    yield text[begun:]


def _segments(text: str, language: str) -> Iterator[str]:
    """Cut a text where the library ends sentences. A part with many marks is given to it alone.

    The library's time is quadratic in the number of marks: a megabyte of nothing else would take minutes.
    """
    marks = _MARK.finditer(text) if len(text) > _MOST_MARKS else iter(())
    cuts = map(re.Match.start, islice(marks, _MOST_MARKS, None, _MOST_MARKS))
    begun = ""
    for start, end in pairwise([0, *cuts, len(text)]):
        begun += text[start:end]
        # The library takes < and > for brackets, inside which no sentence ends, and any other bracket for their end.
        masked = _LIST_MARK.sub("_", begun.replace("<", "_").replace(">", "_"))
        ends = accumulate(map(len, sentencex.segment(language, masked)), initial=0)
        *ended, last = [begun[first:behind] for first, behind in pairwise(ends)] or [""]
        yield from ended
        # A sentence goes on behind the cut, unless it is as long as the whole part.
        begun = last if ended else ""
        if not ended:
            yield last
    yield begun

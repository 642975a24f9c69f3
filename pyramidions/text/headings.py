"""Finds headings among the lines of a text."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, pairwise
from typing import NamedTuple, TypeAlias

# Titles of sections of papers, reports and meetings, which are headings even where no empty line stands before them.
_TITLES = re.compile(
    r"(abstract|introduction|background|related works?|preliminar(y|ies)|(materials? and )?methods?|methodology|"
    r"experiments?|experimental (setup|procedures?)|results?( and discussions?)?|evaluation|discussions?|limitations|"
    r"conclusions?|(concluding|final) remarks|summary|future works?|acknowledge?ments?|references|bibliography|"
    r"appendix|appendices|supplementary materials?)",
    re.IGNORECASE,
)
# "2", "2.", "2.1", "A.1", "A.", "IV."; a letter alone may be a word.
_NUMBER = re.compile(r"(?P<number>\d{1,2}(\.\d{1,2})*|[A-Z](\.\d{1,2})+|([A-Z]|[IVX]{1,5})(?=\.))\.?[ \t]+(?=[^\W\d_])")
_MARKDOWN = re.compile(r"[ ]{0,3}(?P<marks>#{1,6})[ \t]+(?P<title>.*)")
_UNDERLINE = re.compile(r"[ ]{0,3}(=+|-{3,})[ \t]*$")
_FENCE = re.compile(r"[ ]{0,3}(```|~~~)")
_ITEM = re.compile(r"[ \t]*([-*+•‣–]|\(?\d{1,3}[.)]|\(?[a-z][.)])[ \t]+\S")
_ENDS_SENTENCE = tuple(".!?:;,…")
_MOST_CHARACTERS, _MOST_WORDS = 100, 12
#: A longer line above one that begins in lower case is broken by the width of the page.
_LONGEST_UNBROKEN = 50
#: The level of a short line that stands for itself, below that of numbers, capitals and known titles.
_SHORT_LINE = 4


#: Gives the lines of a text, anew at each call.
Lines: TypeAlias = Callable[[], Iterable[str]]


class Line(NamedTuple):
    """A line of a text.

    Attributes:
        text: of the line; of a heading without the marks that make it one.
        level: of a heading, 1 is the highest; 0 for any other line.
        begins_item: it is an entry of a list.
    """

    text: str
    level: int = 0
    begins_item: bool = False


def headed_lines(lines: Lines) -> Iterator[Line]:
    """Yield the lines of a text, headings among them.

    Headings are those of markdown; and, in plain text, short lines that end in no punctuation, if they are numbered,
    in capitals, a usual title of a section ("Methods"), or stand below an empty line and above text. Two headings of
    markdown make a text markdown, in which nothing else is a heading.
    """
    is_markdown = len(list(islice(filter(_MARKDOWN.match, lines()), 2))) > 1
    fenced = skipped = False
    # Each line with those before and behind it.
    padded: Iterator[str | None] = chain([None], lines(), [None])
    for (before, line), (_, following) in pairwise(pairwise(padded)):
        if line is None or skipped:
            skipped = False
            continue
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if fenced:
            yield Line(line)
        elif marked := _MARKDOWN.match(line):
            yield Line(marked["title"].rstrip(" \t#"), len(marked["marks"]))
        elif following is not None and _UNDERLINE.match(following) and _is_short(line):
            skipped = True
            yield Line(line.strip(), 1 if "=" in following else 2)
        else:
            yield Line(line, 0 if is_markdown else _level(line, before, following), bool(_ITEM.match(line)))


def _is_short(line: str) -> bool:
    words = line.split()
    return 0 < len(words) <= _MOST_WORDS and len(line.strip()) <= _MOST_CHARACTERS


def _level(line: str, before: str | None, following: str | None) -> int:
    """Return the level of a heading in plain text, 0 for a line that is none."""
    title = line.strip()
    if not _is_short(title) or title.endswith(_ENDS_SENTENCE) or not any(map(str.isalpha, title)):
        return 0
    numbered = _NUMBER.match(title)
    bare = title[numbered.end() :] if numbered else title
    depth = numbered["number"].count(".") + 1 if numbered else 1
    stands_apart = not (before or "").strip()
    # A word alone in a line may be the end of a sentence.
    if _TITLES.fullmatch(bare) and (stands_apart or bare[0].isupper()):
        return depth
    if bare.isupper() and sum(map(str.isalpha, bare)) > 3:
        return 1
    goes_on = len(title) > _LONGEST_UNBROKEN and (following or "").strip()[:1].islower()
    # "15 patients" counts patients.
    counts = numbered is not None and numbered["number"].isdigit() and "." not in numbered[0] and bare[0].islower()
    if counts:
        return 0
    if numbered and stands_apart and not goes_on:
        return depth
    return _SHORT_LINE if following is not None and _stands_above_text(line, before, following) else 0


def _stands_above_text(line: str, before: str | None, following: str) -> bool:
    """Whether a short line is set apart as a heading is, or, in the first line of a text, as its title is."""
    if before is None:
        return not following.strip()
    if before.strip() or _ITEM.match(line) or _ITEM.match(following):
        return False
    # A short line above an empty one may be anything: a date, a byline, a caption.
    goes_on = line.strip()[0].isupper() and following.strip()[:1].islower()
    return len(following) > len(line) and not goes_on

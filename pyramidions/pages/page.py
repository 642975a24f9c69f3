"""Makes a page: one HTML file that needs no network.

All pages share a template (`page.html`), a stylesheet (`page.css`) and a script (`page.js` and others), and differ in
their data, which stands in the file as JSON. A page shows `Document`s, each a text beside a list of items that link to
its segments.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict

from pyramidions.base.errors import UserError
from pyramidions.text.outline import Outline
from pyramidions.text.support import SummarySentence, Supporting
from pyramidions.text.turns import spoken

#: most bytes of all texts on a page: browsers open it in a few seconds, and it fits in an e-mail
MOST = 24 * 2**20

_PARAGRAPH = 8  # sentences
# One script, in the order of its parts.
_SCRIPT = ("page", "comparison", "chart", "figure")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Kind(TypedDict):
    """What a page shows of its documents, and what it calls things."""

    layout: str  #: what the items consist of: "words" or "sentences"
    title: str  #: of the page until it shows a document
    unit: str  #: what a segment of the document is called
    heading: str  #: of the items
    help: str  #: what a reader can do
    chart: str  #: what it shows
    figure: str  #: what the colours of a saved figure mean
    #: a shade from 0 to 1 or the name of a mark, and what it means; and when that is shown, if not always: "alone" or
    #: "compared", "global" where there are such tokens, "wide"
    legend: list[tuple[float | str, str] | tuple[float | str, str, str]]
    chosen: NotRequired[str]  #: what a marked sentence is to the summary, if not "Chosen"
    alone: NotRequired[str]  #: what is said of a sentence of the summary without links
    table: NotRequired[str]  #: its heading
    caption: NotRequired[str]  #: of the chart
    how: NotRequired[str]  #: what else there is to know
    gamma: NotRequired[float]  #: a value is shaded by this power of it


class Link(TypedDict):
    """Segments that an item links to, the strongest first."""

    to: list[int]
    shares: NotRequired[list[int]]  #: of each, in hundred-thousandths
    covered: NotRequired[float]  #: the share of all of them, from 0 to 1
    whole: NotRequired[float]  #: that of all segments


class Item(TypedDict):
    """A word or a sentence of the summary."""

    text: str  #: with the space before it
    note: NotRequired[str]  #: stands beside it
    links: NotRequired[list[Link | None]]  #: for each view; None where nothing is known


class Layer(TypedDict):
    """A stop of the slider."""

    label: str
    shades: int | str | None  #: which of `Document.shades`; "all" for a full shade, None where nothing is known


class Support(TypedDict):
    """Sentences that support one of a summary."""

    title: str  #: what they have in common
    places: list[list[float]]  #: of each its share, the first segment and the one behind the last


class Sentence(TypedDict):
    """A sentence of a summary."""

    text: str
    enough: bool | None  #: whether its support is enough, if that is known
    support: list[Support]


class Table(TypedDict):
    """A table of figures."""

    head: list[str]
    rows: list[list[str]]
    go: NotRequired[list[int]]  #: for each row, the segment that its first cell leads to


class Document(TypedDict, total=False):
    """A document on a page; all but its name, segments and blocks may be missing."""

    name: str
    query: str | None  #: what the summary answers; documents of one name with different queries can be compared
    about: str  #: a line on it
    segments: list[str]  #: the text in pieces that are shaded and linked to, each with the space before it
    blocks: list[tuple[str, int, str]]  #: h2, h3, p or query; the first segment; the heading or number in the margin
    shades: list[list[int]]  #: lists of a value from 0 to 1000 for each segment
    layers: list[Layer]  #: stops of a slider; without any, the first of `shades` is shown
    scores: list[float | None]  #: of the segments
    ranks: list[int | None]  #: likewise
    marks: dict[str, list[int]]  #: segments by the name of a mark
    items: list[Item]
    parts: list[tuple[str, int]]  #: headings among the items, each with the item that follows
    views: list[str]  #: names of the sets of links
    known: list[bool]  #: for each view, whether anything is known of its links
    copied: int | None  #: the view that shows what words were copied from, which is shown first; None without one
    sentences: list[Sentence]  #: of the summary
    reference: str | None  #: another summary
    table: Table


class DocumentPage:
    """A page of documents, gathered one by one, of ``most`` bytes."""

    most_of_one: ClassVar[str] = ""  # the most that a page shows of one document, in words

    def __init__(self, kind: Kind, settings: Mapping[str, str], most: int = MOST) -> None:
        self._kind = kind
        self.settings = dict(settings)
        self.left = most  # bytes that are left on it
        self._documents: list[str] = []
        self.left_out = 0  # documents that are not on the page, or not to their end
        self.note = ""  # is said of each document that is put on the page

    def reserve(self, part: Any) -> int:
        """Reserve room for a document or a part of one; return its bytes, or 0 if there was none."""
        size = len(_as_json(part).encode())
        if size > self.left:
            return 0
        self.left -= size
        return size

    def keep(self, document: Document, reserved: int) -> None:
        """Put a document on the page, for which so many bytes were reserved."""
        text = _as_json({**document, "about": f"{document['about']} {self.note}"} if self.note else document)
        self.left -= len(text.encode()) - reserved
        self._documents.append(text)

    def put(self, document: Document) -> None:
        """Put a document on the page, or count it as left out where there is no room."""
        if size := self.reserve(document):
            self.keep(document, size)
        else:
            self.left_out += 1

    def html(self) -> str:
        """Return the page."""
        about = {"kind": self._kind, "settings": self.settings, "left_out": self.left_out}
        data = f'{_as_json(about)[:-1]},"documents":[{",".join(self._documents)}]}}'
        page = _resource("page.html").replace("@TITLE@", self._kind["title"], 1)
        page = page.replace("@STYLE@", _resource("page.css"), 1)
        page = page.replace("@SCRIPT@", "".join(_resource(f"{part}.js") for part in _SCRIPT), 1)
        # The data comes last: a text may contain the name of a place.
        return page.replace("@DATA@", data, 1)

    def full(self, page: Path) -> UserError:
        """Return the error about documents that found no room in the file of the page."""
        are = "document is" if self.left_out == 1 else "documents are"
        return UserError(
            f"{self.left_out:,} {are} missing from {page}, or incomplete there: a page holds at most {self.limits}."
        )

    @property
    def limits(self) -> str:
        """The most that a page holds, in words."""
        return f"{MOST // 2**20} MiB, and {self.most_of_one} of one document"


def text_of(outline: Outline) -> Document:
    """Return the sentences of a document as segments in paragraphs, under their headings, with their speakers."""
    texts = spoken(zip(outline.speakers, outline.texts, strict=True)) if outline.speakers else outline.texts
    return {"segments": [f" {text}" for text in texts], "blocks": list(_blocks(outline))}


def _blocks(outline: Outline) -> Iterator[tuple[str, int, str]]:
    """Yield headings of sections (h2) and of what is inside them (h3), and paragraphs (p).

    Each has its tag, its first sentence from 0, and the heading or the number of that sentence.
    """
    headings = outline.headings
    sentence, begun, inside = 0, -1, 0  # inside: sentences of the paragraph
    speakers = outline.speakers
    for unit in outline.units:
        opens_section = unit.section != begun and unit.text == headings[unit.section]
        for section in range(begun + 1, unit.section + 1):
            yield "h2", sentence, headings[section]
            inside = 0
        begun = unit.section
        if unit.is_heading:
            inside = 0
            if not opens_section:
                yield "h3", sentence, unit.text
            continue
        if inside % _PARAGRAPH == 0 or (speakers and speakers[sentence] != speakers[sentence - 1]):
            inside = 0
            yield "p", sentence, f"{sentence + 1:,}"
        inside += 1
        sentence += 1
    # Sections without any text.
    for heading in headings[begun + 1 :]:
        yield "h2", sentence, heading


def sentence_of(sentence: SummarySentence, start: int = 0) -> Sentence:
    """Return a sentence with its support by words, in a document that begins at segment ``start``."""
    recall = sentence.told if sentence.recall is None else f"{sentence.recall:.0%} of its pairs of words"
    support = supported_by(f"By words: {recall}", sentence.by_words, start)
    return {"text": sentence.text, "enough": sentence.is_supported, "support": [support]}


def supported_by(title: str, supporting: Iterable[Supporting] = (), start: int = 0) -> Support:
    """Return sentences of the document under a title."""
    places = [[round(each.share, 4), start + each.start, start + each.end] for each in supporting]
    return {"title": title, "places": places}


def _as_json(data: Any) -> str:
    """Write data so that a script element can contain it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Names of files and ids may hold lone surrogates, which UTF-8 does not.
    text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    # No text may close the script element that contains it.
    return text.replace("<", "\\u003c")


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

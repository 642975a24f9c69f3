"""Makes a page: one HTML file that needs no network.

All pages share a template (`page.html`), a stylesheet (`page.css`) and a script (`page.js`), and differ in their data,
which stands in the file as JSON. A page of documents shows `Document`s, each a text beside a list of items that link to
its segments; a page of scores adds tables and charts (`scores.js`).
"""

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from pyramidions.base.errors import UserError

#: most bytes of all texts on a page: browsers open it in a few seconds, and it fits in an e-mail
MOST = 24 * 2**20

# One script, in the order of its parts.
_SCRIPT = ("page", "comparison", "chart", "figure", "scores")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Kind(TypedDict):
    """What a page shows of its documents, and what it calls things.

    Attributes:
        layout: "words", "sentences" or "segments", of which the items consist.
        title: of the page until it shows a document.
        unit: what a segment of the document is called.
        heading: of the items.
        table: its heading.
        chart: what the chart shows.
        caption: above the chart.
        help: what a reader can do.
        legend: a shade from 0 to 1 or the name of a mark, and what it means; and when it is shown, if not always:
            "alone" or "compared", "predicted" or "unpredicted", "global" where there are such tokens, or "wide".
        figure: what the colours of a saved figure mean.
        how: what else there is to know.
        gamma: a value is shaded by this power of it.
    """

    layout: str
    title: str
    unit: str
    heading: str
    table: str
    chart: str
    caption: str
    help: str
    legend: list[tuple[float | str, str] | tuple[float | str, str, str]]
    figure: str
    how: str
    gamma: float


class Link(TypedDict):
    """What an item links to.

    Attributes:
        to: segments, the strongest first.
        shares: of each of them, in hundred-thousandths.
        covered: the share of all of them, from 0 to 1.
    """

    to: list[int]
    shares: NotRequired[list[int]]
    covered: NotRequired[float]


class Item(TypedDict):
    """A word or a sentence of the summary, or a frequent segment.

    Attributes:
        text: with the space before it.
        note: stands beside it.
        links: for each view; None where nothing is known.
    """

    text: str
    note: NotRequired[str]
    links: NotRequired[list[Link | None]]


class Layer(TypedDict):
    """A stop of the slider.

    Attributes:
        label: what it is.
        shades: which of `Document.shades` it shows; "all" for a full shade everywhere, None where nothing is known.
    """

    label: str
    shades: int | str | None


class Support(TypedDict):
    """Sentences that support one of a summary.

    Attributes:
        title: what they have in common.
        places: of each its share, and where it stands: the first segment and the one behind the last, or its index in
            the `source` of a document of scores.
    """

    title: str
    places: list[list[float]]


class Sentence(TypedDict):
    """A sentence of a summary.

    Attributes:
        pieces: its text, and of each piece the length in words of the copied run that it belongs to, 0 for none.
        enough: whether its support is enough; None where that is unknown.
        support: lists of sentences.
    """

    pieces: list[tuple[str, int]]
    enough: bool | None
    support: list[Support]


class Table(TypedDict):
    """A table of figures.

    Attributes:
        head: of its columns.
        rows: its cells.
        go: for each row, the segment that its first cell leads to.
    """

    head: list[str]
    rows: list[list[str]]
    go: NotRequired[list[int]]


class Document(TypedDict, total=False):
    """A document on a page; all but the name may be missing.

    Attributes:
        name: its heading.
        query: what the summary answers. Documents of one name with different queries can be compared.
        about: a line on it.
        help: instead of that of the page.
        facts: figures by name.
        segments: the text in pieces that are shaded and linked to, each with the space before it.
        blocks: "h2", "h3", "p" or "query", the first segment, and the heading or the number in the margin.
        shades: lists of a value from 0 to 1000 for each segment.
        layers: stops of a slider; without any, the first of `shades` is shown.
        runs: instead of shades, for each segment the length and the value of each run of characters.
        predicted: these values are probabilities.
        rest: what follows the last segment, and its runs.
        scores, ranks: of the segments; None for a segment without a score.
        marks: segments by the name of a mark.
        items: what links to the segments.
        parts: headings among the items, each with the item that follows.
        views: names of the sets of links.
        known: for each view, whether anything is known of its links.
        sentences: of the summary, and what supports them.
        reference: another summary.
        table: of figures.
        bars: how many segments have one character, two, and so on; instead of a chart along the document.
        longest: the last of the bars counts longer ones, too.
    """

    name: str
    query: str | None
    about: str
    help: str
    facts: dict[str, str]
    segments: list[str]
    blocks: list[tuple[str, int, str]]
    shades: list[list[int]]
    layers: list[Layer]
    runs: list[list[int]]
    predicted: bool
    rest: tuple[str, list[int]]
    scores: list[float | None]
    ranks: list[int | None]
    marks: dict[str, list[int]]
    items: list[Item]
    parts: list[tuple[str, int]]
    views: list[str]
    known: list[bool]
    sentences: list[Sentence]
    reference: str | None
    table: Table
    bars: list[int]
    longest: bool


class Room:
    """Counts the bytes that are left on a page.

    Args:
        most: bytes of all documents.
    """

    def __init__(self, most: int = MOST) -> None:
        self.left = most

    def reserve(self, part: Any) -> int:
        """Reserve room for a document or a part of one; return its bytes, or 0 if there was none."""
        size = len(as_json(part).encode())
        if size > self.left:
            return 0
        self.left -= size
        return size


class DocumentPage:
    """A page of documents, gathered one by one.

    Args:
        kind: of the page.
        settings: by name.
        most: bytes of all documents.

    Attributes:
        settings: likewise.
        room: what is left on the page.
        left_out: how many documents are not on the page, or not to their end.
    """

    def __init__(self, kind: Kind, settings: Mapping[str, str], most: int = MOST) -> None:
        self._kind = kind
        self.settings = dict(settings)
        self.room = Room(most)
        self._documents: list[str] = []
        self.left_out = 0

    def keep(self, document: Document, reserved: int) -> None:
        """Put a document on the page, for which so many bytes were reserved."""
        text = as_json(document)
        self.room.left -= len(text.encode()) - reserved
        self._documents.append(text)

    def html(self) -> str:
        """Return the page."""
        about = {"view": "documents", "kind": self._kind, "settings": self.settings, "left_out": self.left_out}
        return rendered(self._kind["title"], f'{as_json(about)[:-1]},"documents":[{",".join(self._documents)}]}}')


def rendered(title: str, data: str) -> str:
    """Return a page.

    Args:
        title: of the page, plain text without markup.
        data: as `as_json` writes it. Its "view" names what is shown: "documents" or "scores".
    """
    page = _resource("page.html").replace("@TITLE@", title, 1).replace("@STYLE@", _resource("page.css"), 1)
    page = page.replace("@SCRIPT@", "".join(_resource(f"{part}.js") for part in _SCRIPT), 1)
    # The data comes last: a text may contain the name of a place.
    return page.replace("@DATA@", data, 1)


def as_json(data: Any) -> str:
    """Write data so that a script element can contain it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Names of files and ids may hold lone surrogates, which UTF-8 does not.
    text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    # No text may close the script element that contains it.
    return text.replace("<", "\\u003c")


def page_is_full(page: Path, left_out: int, most_of_one: str) -> UserError:
    """Return the error about documents that found no room.

    Args:
        page: its file.
        left_out: the number of these documents.
        most_of_one: the most that a page shows of one document.
    """
    are = "document is" if left_out == 1 else "documents are"
    return UserError(
        f"{left_out:,} {are} missing from {page}, or incomplete there: a page holds at most {MOST // 2**20} MiB, and "
        f"{most_of_one} of one document."
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

"""Finds the text of an HTML page in one pass, without a tree, which would take many times the page's memory."""

import re
from dataclasses import dataclass

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.text.headings import HeadedText

#: Deepest nesting of elements. The parser compares an end tag with all open elements, so its time is linear in the
#: size of the page only if the depth is bounded; browsers stop at 512.
DEPTH_LIMIT = 2000

# Elements whose contents are not part of the text.
_NO_TEXT = frozenset(["script", "style", "noscript", "template", "nav", "svg", "title", "figure"])
# Elements that hold no sentences if another element is inside: a table with headers, and a listing of code. Tables
# without headers lay out pages, and whole pages are preformatted.
_NO_TEXT_WITH = {"table": "th", "pre": "code"}
# Tags that end a word. Any other may stand inside one, as in H<sub>2</sub>O, those that HTML does not know as well.
_BLOCK = frozenset(
    [
        *("address", "article", "aside", "audio", "blockquote", "body", "br", "canvas", "caption", "center", "col"),
        *("colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "embed", "fieldset", "figcaption", "figure"),
        *("footer", "form", "frame", "frameset", "head", "header", "hgroup", "hr", "html", "iframe", "legend", "li"),
        *("listing", "main", "menu", "nav", "object", "ol", "optgroup", "p", "plaintext", "pre", "search", "section"),
        *("summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul", "video", "xmp"),
        *(f"h{level}" for level in range(1, 7)),
    ]
)
# Those that end a word and stand in a line of text all the same.
_IN_LINE = frozenset(["button", "img", "input", "label", "option", "select", "svg", "td", "textarea", "th"])
_WORD_END = re.compile(rf"(?=</(?:{'|'.join(sorted(_BLOCK | _IN_LINE))})[\s/>])", re.IGNORECASE)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_PIECE = 2**16  # characters that are parsed at a time


def page_text(html: str, name: str = "A page") -> HeadedText:
    """Return the text between the tags of a page, with a space in place of each tag that ends a word.

    Any string is a page: everything but markup is text. Each heading, paragraph, item or row is a line of its own, with
    an empty line between them. Figures, tables with headers and code listings are left out. The time is linear in the
    page's length.

    Args:
        html: the page.
        name: what an error calls it.

    Raises:
        UserError: more than `DEPTH_LIMIT` elements are inside one another.
    """
    page = _Page(name)
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    # The parser does not report an end tag without a start tag, so the space is inserted before parsing.
    html = _WORD_END.sub(" ", html.replace("\0", ""))
    for start in range(0, len(html), _PIECE):
        # UTF-8 cannot encode half a surrogate pair, which is not a character.
        parser.feed(html[start : start + _PIECE].encode("utf-8", "ignore"))
    if html:
        parser.close()
    return HeadedText.of(page.parts)


@dataclass
class _InQuestion:
    """An open element that may turn out to hold no sentences; `start` is the number of parts before it."""

    tag: str
    start: int
    has_no_text: bool = False


class _Page:
    """Receives the parser's events; every start of an element has an end.

    Attributes:
        parts: as `HeadedText.of` takes them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.parts: list[str | int] = []
        self._depth = self._skipped = self._in_heading = self._preformatted = 0
        self._in_question: list[_InQuestion] = []

    def start(self, tag: str, attributes: object) -> None:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise UserError(
                f"{self._name} must have at most {DEPTH_LIMIT:,} elements inside one another, but has more."
            )
        self._skipped += tag in _NO_TEXT
        if self._in_question and tag == _NO_TEXT_WITH[self._in_question[-1].tag]:
            self._in_question[-1].has_no_text = True
        if tag in _NO_TEXT_WITH:
            self._in_question.append(_InQuestion(tag, len(self.parts)))
        self._preformatted += tag == "pre"
        if tag in _HEADINGS and not self._skipped and not self._in_heading:
            self.parts += ["\n\n", _HEADINGS[tag]]
        else:
            self._separate(tag)
        self._in_heading += tag in _HEADINGS

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._skipped -= tag in _NO_TEXT
        if tag in _NO_TEXT_WITH and (ended := self._in_question.pop()).has_no_text:
            del self.parts[ended.start :]
        self._preformatted -= tag == "pre"
        self._in_heading -= tag in _HEADINGS
        if tag != "br":
            self._separate(tag)

    def _separate(self, tag: str) -> None:
        if tag in _BLOCK or tag in _IN_LINE:
            in_line = tag in _IN_LINE or self._in_heading or self._skipped
            self.parts.append(" " if in_line else "\n" if tag == "br" else "\n\n")

    def data(self, text: str) -> None:
        if not self._skipped:
            # A line break in the source of a page is a space.
            self.parts.append(text if self._preformatted and not self._in_heading else text.replace("\n", " "))

    def close(self) -> None:
        """Nothing is left to do at the end of a page."""

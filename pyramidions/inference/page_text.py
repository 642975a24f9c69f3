"""The text of an HTML page, found in one pass: no tree of it is built, which would take many times the page."""

from collections import Counter
from html.parser import HTMLParser

# What a page holds beside its text.
_NO_TEXT = ("script", "style", "noscript", "template", "nav", "svg", "title")
# Tags that may stand inside a word, as in H<sub>2</sub>O.
_INLINE = frozenset(
    [
        *("a", "abbr", "b", "bdi", "bdo", "cite", "code", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q", "s"),
        *("samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr"),
    ]
)


def page_text(html: str) -> str:
    """Return the text between the tags of a page, with a space in place of each tag that ends a word.

    Any string is a page: what is no markup is text.
    """
    page = _Page()
    page.feed(html)
    page.close()
    return "".join(page.texts)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[str] = []
        self._counts: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._part(tag)
        self._open.append(tag)
        self._counts[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._part(tag)
        # What was left open inside ends, too. An end without a beginning is none.
        while self._counts[tag]:
            last = self._open.pop()
            self._counts[last] -= 1
            if last == tag:
                break

    def _part(self, tag: str) -> None:
        if tag not in _INLINE:
            self.texts.append(" ")

    def handle_data(self, data: str) -> None:
        if not any(self._counts[tag] for tag in _NO_TEXT):
            self.texts.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        # As browsers do with `<![`; the standard library refuses what it does not know.
        return self.parse_bogus_comment(i, report)

"""Turns markdown into HTML pages."""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

#: Characters that are parsed at a time: the parser takes many times their memory.
_PIECE = 2**15
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(```|~~~)")


def markdown_pages(text: str) -> Iterator[str]:
    """Yield markdown, as in CommonMark with tables, as pages of HTML without its front matter and its footnotes.

    A page is a piece of the text, so that a large one takes little memory.
    """
    parser = _parser()
    text = text.replace("\0", "")
    known = _definitions(parser, text)
    return (_rendered(parser, piece, known) for piece in _pieces(text))


def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.front_matter import front_matter_plugin

    # What is nested deeper than the usual 20 would be lost.
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table").use(footnote_plugin).use(front_matter_plugin)
    parser.add_render_rule("footnote_ref", lambda *_: "")
    return parser


def _definitions(parser: "MarkdownIt", text: str) -> dict[str, Any]:
    """Return the links and footnotes that are defined anywhere in a text."""
    links: dict[str, Any] = {}
    footnotes: dict[str, int] = {}
    for piece in _pieces(text):
        if "]:" in piece:
            found: dict[str, Any] = {}
            parser.parse(piece, found)
            links = found.get("references", {}) | links
            footnotes |= dict.fromkeys(found.get("footnotes", {}).get("refs", {}), -1)
    return {"references": links, "footnotes": {"refs": footnotes}}


def _rendered(parser: "MarkdownIt", piece: str, known: dict[str, Any]) -> str:
    environment = {"references": dict(known["references"]), "footnotes": {"refs": dict(known["footnotes"]["refs"])}}
    # The footnotes come last.
    tokens = takewhile(lambda token: token.type != "footnote_block_open", parser.parse(piece, environment))
    return str(parser.renderer.render(list(tokens), parser.options, environment))


def _pieces(text: str) -> Iterator[str]:
    """Cut a text above lines that begin a block, outside of code."""
    start, in_code, is_blank = 0, False, False
    for line in _LINE.finditer(text):
        if line.start() - start > _PIECE and is_blank and not in_code and not line[0][0].isspace():
            yield text[start : line.start()]
            start = line.start()
        in_code ^= _FENCE.match(line[0]) is not None
        is_blank = line[0].isspace()
    yield text[start:]

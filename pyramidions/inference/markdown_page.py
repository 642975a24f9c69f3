"""Turns markdown into an HTML page."""

from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


def markdown_page(text: str) -> str:
    """Return markdown, as in CommonMark with tables, as HTML without its front matter and its footnotes."""
    parser = _parser()
    # The footnotes come last.
    tokens = takewhile(lambda token: token.type != "footnote_block_open", parser.parse(text.replace("\0", "")))
    return str(parser.renderer.render(list(tokens), parser.options, {}))


def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.front_matter import front_matter_plugin

    # What is nested deeper than the usual 20 would be lost.
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table").use(footnote_plugin).use(front_matter_plugin)
    parser.add_render_rule("footnote_ref", lambda *_: "")
    return parser

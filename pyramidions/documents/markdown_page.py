"""Turns markdown into HTML pages."""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, repeat, takewhile
from typing import TYPE_CHECKING, Any

from pyramidions.documents.formulas import is_tex
from pyramidions.text.headings import FENCE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

#: Characters that are parsed at a time: the parser takes many times their memory.
_PIECE = 2**15
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
#: Brackets that nothing closes, or levels of brackets, that a paragraph may have before the others count as text: the
#: parser tries each of them to the end of the paragraph, a hundred times.
_MOST = 10
_BRACKET = re.compile(r"\\.|[\[\]]")
# Formulas in the brackets of LaTeX, inline and in lines of their own; and raised and lowered text as pandoc writes it.
_TYPESET = re.compile(
    r"\\\((?! )((?:[^\\\n]|\\[^()\n]){1,1000}+)(?<! )\\\)|\\\[[ \t]*\n((?:[^\\]|\\[^\[\]]){1,2000}+)\\\][ \t]*$",
    re.MULTILINE,
)
_RAISED = re.compile(r"\^(\d{1,3}(?=\^)|o(?=\^)|[^\s^~]{1,20}(?=\^(?!\w)))\^")
_LOWERED = re.compile(r"(?<=[\w)\]/])~((?<!\d~)\d{1,3}(?=~)|[^\s^~]{1,20}(?=~(?!\w)))~")
# What Jekyll, Hugo and Quarto replace, which is no text; and citations of Pandoc.
_TAG = re.compile(
    r"^[ \t]*:::[^\n]*$|"
    r"(?<!`)(?:\{%[^%`\n]{1,300}%\}|\{\{(?:[<%][^`{}\n]{1,300}[>%]| [\w.][^`{}\\\n]{0,200} )\}\})(?!`)",
    re.MULTILINE,
)
_CITATION = re.compile(r" ?\[(?:see |cf\. )?-?@\w[^\[\]\n]{0,300}\]")
_PARAGRAPH_END = re.compile(r"(\n[ \t]*\n)")


def markdown_pages(text: str) -> Iterator[str]:
    """Yield markdown, as in CommonMark with tables, as pages of HTML without its front matter and its footnotes.

    A page is a piece of the text, so that a large one takes little memory.
    """
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = _parser()
    text = "".join(map(_bounded, _PARAGRAPH_END.split(_TAG.sub("", text.replace("\0", "")))))
    known = _definitions(parser, text)
    # Rules that stand elsewhere enclose no front matter.
    parsers = chain([_parser().use(front_matter_plugin)], repeat(parser))
    return (_rendered(parser, piece, known) for parser, piece in zip(parsers, _pieces(text), strict=False))


def _bounded(paragraph: str) -> str:
    """Escape a paragraph's unclosed brackets if there are many; they are no links."""
    if paragraph.count("[") <= _MOST:
        return paragraph
    open_: list[list[int]] = []  # place and levels inside of each bracket
    too_deep: list[int] = []
    for found in _BRACKET.finditer(paragraph):
        if found[0] == "[":
            open_.append([found.start(), 0])
        elif found[0] == "]" and open_:
            place, levels = open_.pop()
            if levels >= _MOST:
                too_deep.append(place)
            if open_:
                open_[-1][1] = max(open_[-1][1], levels + 1)
    unclosed = [place for place, _ in open_] if len(open_) > _MOST else []
    cuts = sorted(unclosed + too_deep)
    return "\\".join(paragraph[start:end] for start, end in pairwise([0, *cuts, len(paragraph)]))


def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.footnote import footnote_plugin

    # What is nested deeper than the usual 20 would be lost.
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"]).use(footnote_plugin)
    parser.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True)
    parser.inline.ruler.before("escape", "brackets", _brackets)
    parser.add_render_rule("footnote_ref", lambda *_: "")
    parser.add_render_rule("math_block", lambda *_: "")
    parser.add_render_rule("text", _text)
    for kind in ("math_inline", "math_inline_double"):
        parser.add_render_rule(kind, _formula)
    return parser


def _brackets(state: Any, silent: bool) -> bool:
    """Read a formula in brackets, as a rule of the parser; without one they are text."""
    found = _TYPESET.match(state.src, state.pos)
    if not found or not is_tex(found[found.lastindex or 0]):
        return False
    if not silent:
        state.push("math_inline" if found[1] else "math_block", "math", 0).content = found[1]
    state.pos = found.end()
    return True


def _text(_: Any, tokens: Sequence[Any], place: int, *__: Any) -> str:
    text = html.escape(_CITATION.sub("", tokens[place].content))
    return _LOWERED.sub(r"<sub>\1</sub>", _RAISED.sub(r"<sup>\1</sup>", text))


def _formula(_: Any, tokens: Sequence[Any], place: int, *__: Any) -> str:
    from pyramidions.documents.latex_formulas import formula_text

    return html.escape(formula_text(tokens[place].content))


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
        in_code ^= FENCE.match(line[0]) is not None
        is_blank = line[0].isspace()
    yield text[start:]

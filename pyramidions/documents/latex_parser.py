"""Parses sources of LaTeX, and keeps what the macros of their authors stand for."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pylatexenc.latexwalker import LatexWalker
from pylatexenc.macrospec import MacroSpec

from pyramidions.base.errors import UserError
from pyramidions.documents import latex_macros as macros
from pyramidions.documents.latex_formulas import Formulas, specs
from pyramidions.documents.latex_source import MOST

#: Includes inside includes and macros inside macros.
_DEEPEST = 16
#: Most uses of macros that the source defines: those in macros grow without end as well.
_MOST_REPLACED = 100_000
# What stands before the first group of a definition. The parser would take what follows one that begins an environment,
# and does not end it, for a part of it.
_DEFINITION = re.compile(
    r"\\(?:(?:re)?newenvironment\*?\s*\{[^{}]{0,99}\}(?:\s*\[[^\[\]]{0,99}\]){0,2}(?:\s|%[^\n]*+)*+|"
    r"(?:(?:re)?newcommand|providecommand|DeclareRobustCommand|[gex]?def)\*?\s{0,9}\{?\\(?P<name>[A-Za-z]+)\}?"
    r"(?:\s{0,9}\[(\d)\]\s{0,9}(?:\[([^\[\]]{0,99})\]\s{0,9})?|([^{}\\\[\]]{0,60})))(?=\{)"
)
_SECOND_GROUP = re.compile(r"(?:\s|%[^\n]*+)*+(?=\{)")
# Braces, and what holds others.
_BRACE = re.compile(r"\\verb([|!+=@~/;])[^\n]*?\1|\\.|([{}])", re.DOTALL)
_MARKER = re.compile(rf"\\{macros.DEFINED}{{\d+}}")
_BORDER, _COMMENT = re.compile(r"\\((?:begin|end)\{[^{}]{0,99}\})"), re.compile(r"(?<!\\)%[^\n]*+")
_BEGIN_OR_END, _PARAMETER = re.compile(r"\\(begin|end)\s*\{"), re.compile(r"#([1-9])")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
# What packages do inside, and lengths without braces.
_INTERNAL = re.compile(
    r"\\makeatletter(?:[^\\]|\\(?!makeat))*+\\makeatother|"
    r"\\[hv]skip ?[-+]?[\d.,]{0,20} ?(?:\\[A-Za-z]+|(?:true ?)?[a-z]{2}(?: (?:plus|minus) [\d.,]{1,9} ?[a-z]{2,5}){,2})"
)
# The name of a file without braces.
_INPUT = re.compile(r"\\input[ \t]+([^\s{}\\%]+)")
# An accent of text that a paper redefines: the parser would take the end of a formula or group for its letter.
_BARE_ACCENT = re.compile(r"(\\[Hbcdkrtuv])(?=\s{0,9}[$}])")


class Parser:
    """Parses the sources of a paper."""

    def __init__(self, name: str) -> None:
        self._name, self._specs = name, specs()
        self._specs.add_context_category("definitions", macros=[MacroSpec(macros.DEFINED, "{")])
        self.texts = Formulas(self.replacing)  # turns what was parsed into text
        self.held: list[str] = []  # the text between the commands of all sources, outside of what is left out
        self._read = self._depth = self._replaced = 0
        # Of macros of the authors: the first argument where it is left out, and what the macro stands for.
        self.templates: dict[str, tuple[str, str]] = {}
        # Their arguments, and those that the parser does not know yet.
        self._arguments: dict[str, str] = {}
        self._unknown: dict[str, str] = {}
        self._definitions: dict[str, tuple[str, tuple[str, str]]] = {}
        # What begins or ends an environment is replaced before it is parsed.
        self._shorthands: dict[str, str] = {}
        self._parsed_once: dict[str, Sequence[Any]] = {}
        self.flags: dict[str, bool] = {}  # those of \newif; see `latex_source.read_by_tex`

    def parsed(self, source: str) -> Sequence[Any]:
        """Return the nodes of a source, and keep the macros that it defines."""
        self._read += len(source)
        if self._read > MOST:
            raise UserError(f"{self._name} must have at most {MOST:,} characters with all that it includes.")
        self.held += _between_commands(source)
        source = _INTERNAL.sub(
            lambda found: f" {''.join(_MARKER.findall(found[0]))}", self._without_definitions(source)
        )
        source = _BARE_ACCENT.sub(r"\1{}", _INPUT.sub(r"\\input{\1}", source))
        if self._unknown:
            added = [MacroSpec(name, arguments) for name, arguments in self._unknown.items()]
            self._specs.add_context_category(f"authors {self._read}", prepend=True, macros=added)
            self._unknown = {}
        if self._shorthands:
            source = _COMMAND.sub(lambda found: self._shorthands.get(found[1], found[0]), source)
        try:
            nodes, _, _ = LatexWalker(source, self._specs, tolerant_parsing=True).get_latex_nodes()
        # What is no LaTeX can make the library raise any error.
        except Exception as error:
            raise UserError(f"{self._name} cannot be read as LaTeX ({type(error).__name__}).") from None
        return nodes

    def _without_definitions(self, source: str) -> str:
        """Keep what macros stand for, and put marks in place of their definitions, which apply from there on."""
        pieces, end, closing = list[str](), 0, _closing(source)
        for found in _DEFINITION.finditer(source):
            close = closing.get(found.end())
            if close is not None and found["name"] is None:
                second = _SECOND_GROUP.match(source, close + 1)
                close = closing.get(second.end()) if second else None
            if found.start() >= end and close is not None:
                pieces.append(source[end : found.start()])
                if found["name"] is not None:
                    pieces.append(self._defined(found, source[found.end() + 1 : close]))
                end = close + 1
        return "".join([*pieces, source[end:]])

    def _defined(self, found: re.Match[str], body: str) -> str:
        """Keep what a macro stands for, and return what marks its definition."""
        name, number, default, parameters = found.groups()
        count = int(number or parameters.count("#"))
        parts = _BEGIN_OR_END.findall(body)
        # Those of TeX may stand between other signs, and are then not known.
        is_known = name not in macros.ARGUMENTS and (number or not _PARAMETER.sub("", parameters).strip())
        if parts.count("begin") != parts.count("end"):
            self._shorthands |= {} if count else {name: f"{body} "}
        elif is_known or not count:
            arguments = "{" * count if default is None else "[" + "{" * (count - 1)
            if name not in macros.ARGUMENTS and self._arguments.get(name) != arguments:
                self._arguments[name] = self._unknown[name] = arguments
            marker, template = f"\\{macros.DEFINED}{{{len(self._definitions)}}}", (default or "", body)
            # Of a definition in what is not read, too.
            self.templates.setdefault(name, template)
            self._definitions[marker] = name, template
            return marker
        return ""

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Read what stands elsewhere in the source, or in another file."""
        if self._depth > _DEEPEST:
            raise UserError(f"{self._name} must include files and macros at most {_DEEPEST} deep.")
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def replacing(self, node: Any) -> Iterator[Sequence[Any] | None]:
        """Hand out what a macro of the author stands for; one that is redefined by itself is not replaced inside."""
        name = node.macroname
        if name == macros.DEFINED:
            if (defined := self._definitions.get(node.latex_verbatim())) is not None:
                self.templates[defined[0]] = defined[1]
                self._parsed_once.pop(defined[0], None)
            yield []
            return
        if (template := self.templates.pop(name, None)) is None:
            yield None
            return
        self._replaced += 1
        if self._replaced > _MOST_REPLACED:
            raise UserError(f"{self._name} must use its own macros at most {_MOST_REPLACED:,} times.")
        with self.deeper():
            stands_for = self._parsed_once.get(name)
            if stands_for is None:
                stands_for = self.parsed(_filled(template, node))
                if not _PARAMETER.search(template[1]):
                    self._parsed_once[name] = stands_for
            yield stands_for
        self.templates.setdefault(name, template)


def _closing(source: str) -> dict[int, int]:
    """Return where groups end, by where they begin."""
    opened, closing = list[int](), dict[int, int]()
    for found in _BRACE.finditer(source):
        if found[2] == "{":
            opened.append(found.start())
        elif found[2] and opened:
            closing[opened.pop()] = found.start()
    return closing


def _between_commands(source: str) -> Iterator[str]:
    """Yield the text of a source in pieces, without environments that are left out."""
    depth = 0
    for place, piece in enumerate(_BORDER.split(_COMMENT.sub("", source))):
        begins, environment = piece[:1] == "b", piece[piece.find("{") + 1 : -1]
        if place % 2 and environment in macros.SKIPPED_ENVIRONMENTS:
            depth = max(0, depth + (1 if begins else -1))
        elif not place % 2 and not depth:
            yield _COMMAND.sub("\\n\\n", piece)


def _filled(template: tuple[str, str], node: Any) -> str:
    """Return what a macro stands for, with its arguments."""
    default, body = template
    given = node.nodeargd.argnlist if node.nodeargd is not None else []
    said = [default if each is None else each.latex_verbatim() for each in given]
    said = [each[1:-1] if each[:1] in ("{", "[") and each is not default else each for each in said]
    return _PARAMETER.sub(lambda found: "".join(said[int(found[1]) - 1 : int(found[1])]), body)

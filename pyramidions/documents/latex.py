"""Reads papers in LaTeX: a .tex file, or the sources of a paper as arXiv hands them out (.tar.gz)."""

import posixpath
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.documents import latex_macros as macros
from pyramidions.documents.formulas import on_the_line
from pyramidions.documents.latex_source import read_by_tex
from pyramidions.documents.lost import note_lost
from pyramidions.documents.paper_xml import Paper
from pyramidions.files.bounded import MEBIBYTE, printable, real_path
from pyramidions.text.normalization import joined_lines

#: Includes inside includes and macros inside macros; and braces inside braces.
_DEEPEST, _NESTED = 16, 100
#: Most characters of all that is included: a file that includes itself twice, and so on, grows without end.
_MOST = 4 * MEBIBYTE
#: Most uses of macros that the source defines: those in macros grow without end as well.
_MOST_REPLACED = 100_000
_ENDINGS = (".tex", ".ltx")
#: Begins a document.
BEGIN = "\\begin{document}"
# Not in a comment.
_BEGINS, _ENDS = (re.compile(rf"^(?:[^%\n\\]|\\.)*?\\{each}{{document}}", re.MULTILINE) for each in ("begin", "end"))
# Of no text; DOS ends a file in 0x1a.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f]")
_SPACE_BEFORE = re.compile(r" (?=[.,;:!?)\]](?!\d))")
# The parser would take what follows a definition that begins an environment, and does not end it, for a part of it.
_GROUP = r"\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}){0,4000}+\}"
_GAP = r"(?:\s|%[^\n]*+)*+"
_ENVIRONMENT = re.compile(
    rf"\\(?:re)?newenvironment\*?\s*\{{[^{{}}]{{0,99}}\}}(?:\s*\[[^\[\]]{{0,99}}\]){{0,2}}{_GAP}{_GROUP}{_GAP}{_GROUP}"
)
_DEFINITION = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand|[gex]?def)\*?\s{0,9}\{?\\([A-Za-z]+)\}?"
    rf"(?:\s{{0,9}}\[(\d)\]\s{{0,9}}(?:\[([^\[\]]{{0,99}})\]\s{{0,9}})?|([^{{}}\\\[\]]{{0,60}}))({_GROUP})"
)
_BORDER, _COMMENT = re.compile(r"\\((?:begin|end)\{[^{}]{0,99}\})"), re.compile(r"(?<!\\)%[^\n]*+")
_BEGIN_OR_END, _PARAMETER = re.compile(r"\\(begin|end)\s*\{"), re.compile(r"#([1-9])")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
# An accent of text that a paper redefines: the parser would take the end of a formula or group for its letter.
_BARE_ACCENT = re.compile(r"(\\[Hbcdkrtuv])(?=\s{0,9}[$}])")
# What follows \vskip, without braces.
_LENGTH = re.compile(
    r"[-+]?[\d.,]{1,20} ?(?:true ?)?[a-z]{2}(?: (?:plus|minus) [-+]?[\d.,]{1,20} ?(?:true ?)?[a-z]{2,5}){0,2}"
)
_TIMES = re.compile(r"(?<=\d)x(?=[\d+-])")
_EXPONENT, _UNIT = re.compile(r"[eE]\+?(-?\d+)$"), re.compile(r"\\([A-Za-z]+)|([^\\{}~\s]+)")
# Stands around the name of what is referred to until all is read.
_MARK = "\ue001"
_REFERENCE = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}")
# What is left of brackets around citations.
_LEFT, _EMPTY = re.compile(r"[;, ]{1,9}(?=[)\]])"), re.compile(r" ?(?:\([;, ]*\)|\[[;, ]*\])")

#: Returns an included file by the name in the source; None if there is none.
_Find = Callable[[str], str | None]


def read_latex(path: Path) -> Paper:
    """Read a paper: a .tex file, whose includes lie in its folder, or a .tar.gz with such files.

    Figures, tables, listings, formulas in lines of their own, footnotes, citations and references are left out. Macros
    of the authors are replaced by what they stand for. A note names included files that are missing.
    """
    name = printable(path)
    if path.suffix.lower() == ".tex":
        sources = [(_decoded(path.read_bytes(), name), partial(_on_disk, real_path(path.parent), name))]
    else:
        files = _unpacked(path, name)
        sources = [(text, partial(_packed, files, place)) for place, text in files.items() if BEGIN in text]
        if not sources:
            raise UserError(f"{name} must hold a .tex file with {BEGIN}, but holds none.")
    read = [((reader := _Reader(name, find)).read(text), reader) for text, find in sources]
    # The text of a paper is longer than that of its supplement, or of a template.
    paper, reader = max(read, key=lambda each: sum(len(line) for _, line in each[0].body))
    note_lost(name, reader.held, paper.text)
    if reader.missing:
        names = ", ".join(dict.fromkeys(reader.missing))
        note(f"{name} includes files that are not in its folder and were left out: {names}.")
    return paper


def _between_commands(source: str) -> Iterator[str]:
    """Yield the text of a source in pieces, without environments that are left out."""
    depth = 0
    for place, piece in enumerate(_BORDER.split(_COMMENT.sub("", source))):
        begins, environment = piece[:1] == "b", piece[piece.find("{") + 1 : -1]
        if place % 2 and environment in macros.SKIPPED_ENVIRONMENTS:
            depth = max(0, depth + (1 if begins else -1))
        elif not place % 2 and not depth:
            yield _COMMAND.sub("\\n\\n", piece)


def _on_disk(folder: Path, name: str, wanted: str) -> str | None:
    try:
        file = real_path(folder / wanted)
        content = file.read_bytes() if file.is_relative_to(folder) and file.is_file() else None
    except (OSError, ValueError):
        return None  # a name may be too long, or hold a null character
    return None if content is None else _decoded(content, name)


def _packed(files: Mapping[str, str], beside: str, wanted: str) -> str | None:
    # From the folder of the document, or from that of all.
    found = (
        files.get(posixpath.normpath(posixpath.join(folder, wanted))) for folder in (posixpath.dirname(beside), "")
    )
    return next((text for text in found if text is not None), None)


def _unpacked(path: Path, name: str) -> dict[str, str]:
    """Return the .tex files of an archive by their places."""
    files, size = dict[str, str](), 0
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                # macOS puts a file of its own, ._NAME, beside each.
                is_ours = place.suffix.lower() in _ENDINGS and not place.name.startswith("._")
                if member.isfile() and is_ours:
                    size += member.size
                    if size > _MOST:
                        raise UserError(f"{name} must hold at most {_MOST // MEBIBYTE} MiB of .tex files.")
                    content = archive.extractfile(member)
                    assert content is not None
                    with suppress(UserError):
                        files[str(place)] = _decoded(content.read(), name)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise UserError(f"{name} cannot be read as .tar.gz ({type(error).__name__}).") from None
    return files


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if _BINARY.search(content):
            raise UserError(f"{name} must hold LaTeX, but holds bytes of no text.") from None
        return content.decode("latin-1")


class _Reader:
    """Walks over what the parser found in a source, and collects lines.

    Attributes:
        missing: files that the text includes, but that were not found.
        held: the text between the commands of all sources, outside of what is left out.
    """

    def __init__(self, name: str, find: _Find) -> None:
        from pylatexenc import latexwalker

        from pyramidions.documents.latex_formulas import Formulas, specs

        self._name, self._find, self._walker = name, find, latexwalker
        self._specs, self._texts = specs(), Formulas(self._replacing)
        self._read, self._depth, self._nested, self._replaced = 0, 0, 0, 0
        self.missing: list[str] = []
        self.held: list[str] = []
        self._macros: dict[str, Sequence[Any]] = {}
        # Of macros with arguments: the first where it is left out, and what the macro stands for; and those that the
        # parser does not know yet.
        self._templates: dict[str, tuple[str, str]] = {}
        self._arguments: dict[str, str] = {}
        self._flags: dict[str, bool] = {}
        self._shorthands: dict[str, str] = {}
        self._title, self._abstract = "", list[str]()
        self._lines: list[tuple[int | None, str]] = []
        self._begun: list[str] = []
        self._counts = [0] * len(macros.RANKS)
        self._numbers: dict[str, str] = {}

    def read(self, source: str) -> Paper:
        """Return the paper of a main file, or of a part of one."""
        preamble, body = _divided(read_by_tex(source, self._flags))
        self._walk(self._parsed(preamble))
        # What a preamble prints is no text.
        self._lines, self._begun, self.missing, self.held = [], [], [], []
        self._walk(self._parsed(body))
        self._end()
        highest = min((rank for rank, _ in self._lines if rank is not None), default=0)
        body_lines = [(0 if rank is None else 2 + rank - highest, self._numbered(text)) for rank, text in self._lines]
        return Paper(self._title, self._numbered(" ".join(self._abstract)), body_lines)

    def _numbered(self, text: str) -> str:
        """Return a line with the numbers of the sections that it refers to; other references are left out."""
        text = _REFERENCE.sub(lambda match: self._numbers.get(match[1], ""), text)
        return _LEFT.sub("", _SPACE_BEFORE.sub("", _EMPTY.sub("", " ".join(text.split()))))

    def _parsed(self, source: str) -> Sequence[Any]:
        self._read += len(source)
        if self._read > _MOST:
            raise UserError(f"{self._name} must have at most {_MOST:,} characters with all that it includes.")
        self.held += _between_commands(source)
        source = _BARE_ACCENT.sub(r"\1{}", _ENVIRONMENT.sub("", source))
        source = _DEFINITION.sub(self._defined, source)
        if self._arguments:
            from pylatexenc.macrospec import MacroSpec

            added = [MacroSpec(name, arguments) for name, arguments in self._arguments.items()]
            self._specs.add_context_category(f"authors {self._read}", prepend=True, macros=added)
            self._arguments = {}
        if self._shorthands:
            source = _COMMAND.sub(lambda found: self._shorthands.get(found[1], found[0]), source)
        try:
            nodes, _, _ = self._walker.LatexWalker(source, self._specs, tolerant_parsing=True).get_latex_nodes()
        # What is no LaTeX can make the library raise any error.
        except Exception as error:
            raise UserError(f"{self._name} cannot be read as LaTeX ({type(error).__name__}).") from None
        return nodes

    def _defined(self, found: re.Match[str]) -> str:
        """Keep what a macro stands for if it has arguments, or begins an environment; return what the parser reads."""
        name, number, default, parameters, group = found.groups()
        body, count = group[1:-1], int(number or parameters.count("#"))
        # Those of TeX may stand between other signs, and are then not known.
        is_known = name not in macros.ARGUMENTS and (number or not _PARAMETER.sub("", parameters).strip())
        parts = _BEGIN_OR_END.findall(body)
        is_even = parts.count("begin") == parts.count("end")
        if not count and is_even:
            return found[0]
        if not count:
            self._shorthands[name] = f"{body} "
        elif is_even and is_known:
            self._templates[name] = (default or "", body)
            self._arguments[name] = "{" * count if default is None else "[" + "{" * (count - 1)
        return ""

    def _walk(self, nodes: Sequence[Any]) -> None:
        if self._nested > _NESTED:
            raise UserError(f"{self._name} must have at most {_NESTED} braces inside one another.")
        self._nested += 1
        left = iter(nodes)
        in_abstract = False
        for node in left:
            if node is None or node.isNodeType(self._walker.LatexCommentNode):
                continue
            # \abstract{...}; of the class aa, which has five of them: \abstract{...}{...}{...}{...}{...}
            if in_abstract and node.isNodeType(self._walker.LatexGroupNode):
                self._abstract += [text for _, text in self._apart(node.nodelist)]
                continue
            is_space = node.isNodeType(self._walker.LatexCharsNode) and not node.chars.strip()
            in_abstract &= is_space and node.chars.count("\n") < 2
            if node.isNodeType(self._walker.LatexCharsNode):
                self._characters(node.chars)
            elif node.isNodeType(self._walker.LatexGroupNode):
                self._walk(node.nodelist)
            elif node.isNodeType(self._walker.LatexEnvironmentNode):
                self._environment(node)
            elif node.isNodeType(self._walker.LatexMathNode):
                if node.displaytype == "inline":
                    self._begun.append(self._texts.formula(node.nodelist))
            elif node.isNodeType(self._walker.LatexSpecialsNode):
                self._characters(self._texts.node_to_text(node))
            else:
                in_abstract = node.macroname == "abstract"
                self._macro(node, left)
        self._nested -= 1

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Read what stands elsewhere in the source, or in another file."""
        if self._depth > _DEEPEST:
            raise UserError(f"{self._name} must include files and macros at most {_DEEPEST} deep.")
        self._depth += 1
        yield
        self._depth -= 1

    def _characters(self, text: str) -> None:
        first, *others = re.split(r"\n[ \t]*\n\s*", text)
        self._begun.append(first)
        for paragraph in others:
            self._end()
            self._begun.append(paragraph)

    def _environment(self, node: Any) -> None:
        if node.environmentname in macros.SKIPPED_ENVIRONMENTS:
            return
        if node.environmentname == "abstract":
            self._abstract += [text for _, text in self._apart(node.nodelist)]
            return
        self._end()
        self._walk(node.nodelist)
        self._end()

    def _macro(self, node: Any, left: Iterator[Any]) -> None:
        arguments = node.nodeargd.argnlist if node.nodeargd is not None else None
        name, given = node.macroname, [each for each in arguments or [] if each is not None]
        if name in macros.INCLUDES:
            wanted = _inside(given[-1]) if given else ""
            is_name = bool(given) and not given[-1].isNodeType(self._walker.LatexGroupNode)
            following = next(left, None) if is_name else None
            # \input name: the argument is its first letter.
            behind = getattr(following, "chars", "")
            more = next(iter(behind.split()), "") if behind[:1].strip() else ""
            self._include(wanted + more)
            self._walk([] if behind else [following])
            self._characters(behind[len(more) :])
        elif name in macros.IMPORTS:
            self._include(str(PurePosixPath(*map(_inside, given[-2:]))))
        elif name in ("vskip", "hskip"):
            behind = getattr(next(left, None), "chars", "").lstrip(" ")
            length = _LENGTH.match(behind)
            if behind.strip(" +-.,0123456789"):
                self._characters(f" {behind[length.end() :] if length else behind}")
            elif behind:
                next(left, None)  # a length as its unit
        elif name in macros.DEFINE:
            self._define(arguments or [])
        elif name == "def":
            # \def\name{...}: three nodes, or two if the parser knows the name with an argument; \def\name#1{...}: four,
            # and what it stands for is left out.
            macro = next(left, None)
            taken = [each for each in getattr(getattr(macro, "nodeargd", None), "argnlist", None) or [] if each]
            behind = taken[-1] if taken else next(left, None)
            if getattr(behind, "chars", "").startswith("#"):
                next(left, None)
            elif (
                macro is not None
                and hasattr(macro, "macroname")
                and (body := getattr(behind, "nodelist", None)) is not None
            ):
                self._macros[macro.macroname] = body
        elif name in macros.HEADINGS and not (given and given[-1].isNodeType(self._walker.LatexGroupNode)):
            # Its name as an argument of another macro.
            self._walk(given[-1:])
        elif name in macros.HEADINGS:
            text = " ".join(line for _, line in self._apart(given[-1:]))
            self._end()
            if text:
                unnumbered = name in macros.UNNUMBERED or node.latex_verbatim().startswith(f"\\{name}*")
                self._count(macros.HEADINGS[name], unnumbered)
                self._lines.append((macros.HEADINGS[name], text))
        elif name == "label":
            # Of what else it may be is not known here: a theorem, an entry of a list.
            if given and self._lines and self._lines[-1][0] is not None and not "".join(self._begun).strip():
                self._numbers[_inside(given[-1])] = ".".join(str(count) for count in self._counts if count)
        elif name in macros.REFERENCES:
            self._begun.append(f"{_MARK}{_inside(given[-1])}{_MARK}" if given else "")
        elif name == "title":
            self._title = " ".join(line for _, line in self._apart(given[-1:]))
        elif name in ("item", "par", "newpage", "clearpage", "bigskip", "medskip", "smallskip"):
            self._end()
        elif name in macros.WORDS:
            self._begun.append(macros.WORDS[name])
        elif name in macros.SKIPPED_MACROS:
            pass
        elif name in macros.QUANTITIES:
            self._begun.append(_quantity(name, [each.latex_verbatim() for each in given]))
        elif name in ("^", "~") and given and not _inside(given[-1]):
            # An accent of nothing.
            self._begun.append(name)
        elif name in macros.LAST:
            self._walk(given[-1:])
        elif name in macros.READ_AS:
            self._walk(given[-2:-1])
        elif name in self._macros or name in self._templates:
            with self._replacing(node) as stands_for:
                self._walk(stands_for or [])
        elif (known := self._texts.latex_context.get_macro_spec(name)) is not None and known.simplify_repl:
            if given and "{" in (node.nodeargd.argspec or "") and not callable(known.simplify_repl):
                self._walk([each for each in given if each.isNodeType(self._walker.LatexGroupNode)])
            else:
                self._begun.append(self._texts.node_to_text(node))
        else:
            self._walk([each for each in given if each.latex_verbatim()[:1] != "["])

    @contextmanager
    def _replacing(self, node: Any) -> Iterator[Sequence[Any] | None]:
        """Hand out what a macro of the author stands for; one that is redefined by itself is not replaced inside."""
        name = node.macroname
        known: dict[str, Any] = self._templates if name in self._templates else self._macros
        if (stands_for := known.pop(name, None)) is None:
            yield None
            return
        self._replaced += 1
        if self._replaced > _MOST_REPLACED:
            raise UserError(f"{self._name} must use its own macros at most {_MOST_REPLACED:,} times.")
        with self._deeper():
            yield stands_for if known is self._macros else self._parsed(_filled(stands_for, node))
        known.setdefault(name, stands_for)

    def _count(self, rank: int, unnumbered: bool) -> None:
        if not unnumbered:
            self._counts[rank] += 1
            self._counts[rank + 1 :] = [0] * (len(macros.RANKS) - rank - 1)

    def _include(self, wanted: str) -> None:
        # \input{name} adds the ending where it is missing.
        for place in (wanted, f"{wanted}.tex"):
            if (text := self._find(place)) is not None:
                with self._deeper():
                    self._walk(self._parsed(_divided(read_by_tex(text, self._flags))[1]))
                return
        if PurePosixPath(wanted).suffix.lower() in ("", *_ENDINGS):
            self.missing.append(printable(Path(wanted)))

    def _define(self, arguments: Sequence[Any]) -> None:
        """Keep what a macro without arguments stands for."""
        if len(arguments) != len(macros.DEFINITION):
            return
        _, name, number, _, body = arguments
        macro = next((each.macroname for each in _nodes(name) if hasattr(each, "macroname")), None)
        if macro is not None and number is None and body is not None:
            self._macros[macro] = _nodes(body)

    def _apart(self, nodes: Sequence[Any]) -> list[tuple[int | None, str]]:
        """Return the lines of nodes that stand apart from the text."""
        lines, begun = self._lines, self._begun
        self._lines, self._begun = [], []
        self._walk(nodes)
        self._end()
        found, self._lines, self._begun = self._lines, lines, begun
        return found

    def _end(self) -> None:
        """End a paragraph."""
        if text := " ".join(on_the_line(joined_lines("".join(self._begun))).split()):
            self._lines.append((None, text))
        self._begun = []


def _divided(source: str) -> tuple[str, str]:
    """Return the preamble and the document of a file; all of a file without a document is one."""
    begun = _BEGINS.search(source)
    preamble, body = (source[: begun.end()], source[begun.end() :]) if begun else ("", source)
    ended = _ENDS.search(body) if begun else None
    return preamble.removesuffix(BEGIN), body[: ended.end()].removesuffix("\\end{document}") if ended else body


def _filled(template: tuple[str, str], node: Any) -> str:
    """Return what a macro with arguments stands for."""
    default, body = template
    given = node.nodeargd.argnlist if node.nodeargd is not None else []
    said = [default if each is None else each.latex_verbatim() for each in given]
    said = [each[1:-1] if each[:1] in ("{", "[") and each is not default else each for each in said]
    return _PARAMETER.sub(lambda found: "".join(said[int(found[1]) - 1 : int(found[1])]), body)


def _quantity(name: str, arguments: list[str]) -> str:
    """Return numbers and their unit as siunitx prints them; older packages have one of the two in brackets."""
    options = [each.strip("[] ") for each in arguments if each.startswith("[") and "=" not in each]
    arguments = [each.strip("{} ") for each in arguments if not each.startswith("[")]
    unit = ""
    if name in ("unit", "unitfrac", "si"):
        arguments = [*options[:1], "/".join(arguments)]
    if name in ("numprint", "np"):
        unit = "".join(options)
    elif not name.startswith(("num", "ang", "tab")):
        *arguments, unit = arguments or [""]
    numbers = [_number(number) for argument in arguments for number in argument.split(";")]
    if name == "ang":
        return "".join(number + sign for number, sign in zip(numbers, "°′″", strict=False) if number)
    return f"{(' to ' if name.endswith('range') else ', ').join(numbers)} {_unit(unit)}".strip()


def _number(source: str) -> str:
    """Return a number, or a product of some, as siunitx prints it."""
    said = "".join(source.split()).replace("+-", "±").replace("\\pm", "±")
    return _EXPONENT.sub(r"×10^\1", _TIMES.sub("×", said))


def _unit(source: str) -> str:
    """Return a unit as it is printed: m/s^2 of ``\\metre\\per\\second\\squared``."""
    text, is_apart, power = "", False, ""
    for macro, written in _UNIT.findall(source):
        if macro in macros.POWERS:
            power = macros.POWERS[macro]
            continue
        sign = macros.PREFIXES.get(macro) or macros.UNITS.get(macro, macro) or written.replace(".", " ")
        text += f" {sign}" if is_apart and sign[0] not in "/^" else sign
        is_apart = macro not in macros.PREFIXES and sign[-1] not in "^/"
        text, power = (f"{text}{power}", "") if macro in macros.UNITS or is_apart else (text, power)
    return text


def _inside(group: Any) -> str:
    return str(group.latex_verbatim()).strip("{} ")


def _nodes(node: Any) -> Sequence[Any]:
    """Return the nodes of a group; the node itself where it is no group."""
    return node.nodelist if hasattr(node, "nodelist") else [node]

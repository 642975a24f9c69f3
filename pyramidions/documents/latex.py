"""Reads papers in LaTeX: a .tex file, or the sources of a paper as arXiv hands them out (.tar.gz)."""

import posixpath
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.documents import latex_macros as macros
from pyramidions.documents.formulas import on_the_line
from pyramidions.documents.latex_source import MOST, read_by_tex
from pyramidions.documents.lost import note_lost
from pyramidions.documents.paper_xml import Paper
from pyramidions.files.bounded import MEBIBYTE, printable, real_path
from pyramidions.text.normalization import joined_lines

#: Braces inside braces.
_NESTED = 100
_ENDINGS = (".tex", ".ltx")
#: Begins a document.
BEGIN = "\\begin{document}"
# Not in a comment.
_BEGINS, _ENDS = (re.compile(rf"^(?:[^%\n\\]|\\.)*?\\{each}{{document}}", re.MULTILINE) for each in ("begin", "end"))
# Of no text; DOS ends a file in 0x1a.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f]")
_SPACE_BEFORE = re.compile(r" (?=[.,;:!?)\]](?!\d))")
# Stands around the name of what is referred to until all is read.
_MARK = "\ue001"
_REFERENCE = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}")
# What is left of brackets around citations.
_LEFT = re.compile(r"[;, ]{1,9}(?=[)\]])")
_EMPTY = re.compile(
    r" ?(?:\((?:[;, ]|see|cf\.|e\.g\.|also|and|Chapter|Section|Sec\.|Appendix|Figure|Fig\.|Table|Eq\.)*\)|\[[;, ]*\])"
)
# Behind these words, what is left out leaves a hole.
_BEFORE_HOLE = re.compile(
    r"(?:^|[\s(])(?:in|by|of|from|to|with|on|at|under|via|than|following|von|nach|bei|aus|mit|durch|laut|dans|par|de|"
    r"en|por|di|da)\s*$",
    re.IGNORECASE,
)
_LONGEST_WORD = 12

#: Returns an included file by the name in the source; None if there is none.
_Find = Callable[[str], str | None]


def read_latex(path: Path) -> Paper:
    """Read a paper: a .tex file, whose includes lie in its folder, or a .tar.gz with such files.

    Figures, tables, listings, formulas in lines of their own, footnotes, citations and references are left out; behind
    a preposition, these are [?]. Macros of the authors are replaced by what they stand for. A note names included files
    that are missing.
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
    note_lost(name, reader.parser.held, paper.text)
    if reader.missing:
        names = ", ".join(dict.fromkeys(reader.missing))
        note(f"{name} includes files that are not in its folder and were left out: {names}.")
    return paper


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
                    if size > MOST:
                        raise UserError(f"{name} must hold at most {MOST // MEBIBYTE} MiB of .tex files.")
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
    """Walks over what the parser found in a source, and collects lines, and the included files that are missing."""

    def __init__(self, name: str, find: _Find) -> None:
        from pylatexenc import latexwalker

        from pyramidions.documents.latex_parser import Parser

        self._name, self._find, self._walker = name, find, latexwalker
        self.parser, self.missing, self._nested = Parser(name), list[str](), 0
        self._texts = self.parser.texts
        self._title, self._abstract = "", list[str]()
        self._lines: list[tuple[int | None, str]] = []
        self._begun: list[str] = []
        self._counts = [0] * len(macros.RANKS)
        self._numbers: dict[str, str] = {}

    def read(self, source: str) -> Paper:
        """Return the paper of a main file, or of a part of one."""
        preamble, body = _divided(read_by_tex(source, self.parser.flags))
        self._walk(self.parser.parsed(preamble))
        # What a preamble prints is no text.
        self._lines, self._begun, self.missing, self.parser.held = [], [], [], []
        self._walk(self.parser.parsed(body))
        self._end()
        highest = min((rank for rank, _ in self._lines if rank is not None), default=0)
        body_lines = [(0 if rank is None else 2 + rank - highest, self._numbered(text)) for rank, text in self._lines]
        return Paper(self._title, self._numbered(" ".join(self._abstract)), body_lines)

    def _numbered(self, text: str) -> str:
        """Return a line with the numbers of the sections that it refers to.

        Other references and sources are left out, or are [?] behind a preposition, as TeX prints what it does not know.
        """

        def number(match: re.Match[str]) -> str:
            before = match.string[max(match.start() - _LONGEST_WORD, 0) : match.start()]
            return self._numbers.get(match[1], "[?]" if _BEFORE_HOLE.search(before) else "")

        text = _REFERENCE.sub(number, text)
        return _LEFT.sub("", _SPACE_BEFORE.sub("", _EMPTY.sub("", " ".join(text.split()))))

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
                else:
                    self._end()  # no sentence goes on over what is not there
            elif node.isNodeType(self._walker.LatexSpecialsNode):
                self._characters(self._texts.node_to_text(node))
            else:
                in_abstract = node.macroname == "abstract"
                self._macro(node, left)
        self._nested -= 1

    def _characters(self, text: str) -> None:
        first, *others = re.split(r"\n[ \t]*\n\s*", text)
        self._begun.append(first)
        for paragraph in others:
            self._end()
            self._begun.append(paragraph)

    def _environment(self, node: Any) -> None:
        if node.environmentname in macros.SKIPPED_ENVIRONMENTS:
            if node.environmentname.rstrip("*") in macros.DISPLAYED:
                self._end()
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
            self._include(_inside(given[-1]) if given else "")
        elif name in macros.IMPORTS:
            self._include(str(PurePosixPath(*map(_inside, given[-2:]))))
        elif name == "def":
            next(left, None), next(left, None)  # the parser did not understand it
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
            self._begun.append(_MARK * 2 if name in macros.UNKNOWN else "")
        elif name in macros.QUANTITIES:
            self._begun.append(macros.quantity(name, [each.latex_verbatim() for each in given]))
        elif name in ("^", "~") and given and not _inside(given[-1]):
            # An accent of nothing.
            self._begun.append(name)
        elif name in macros.LAST:
            self._walk(given[-1:])
        elif name in macros.READ_AS:
            self._walk(given[-2:-1])
        elif name == macros.DEFINED or name in self.parser.templates:
            with self.parser.replacing(node) as stands_for:
                self._walk(stands_for or [])
        elif (known := self._texts.latex_context.get_macro_spec(name)) is not None and known.simplify_repl:
            if given and "{" in (node.nodeargd.argspec or "") and not callable(known.simplify_repl):
                self._walk([each for each in given if each.isNodeType(self._walker.LatexGroupNode)])
            else:
                self._begun.append(self._texts.node_to_text(node))
        else:
            self._walk([each for each in given if each.latex_verbatim()[:1] != "["])

    def _count(self, rank: int, unnumbered: bool) -> None:
        if not unnumbered:
            self._counts[rank] += 1
            self._counts[rank + 1 :] = [0] * (len(macros.RANKS) - rank - 1)

    def _include(self, wanted: str) -> None:
        # \input{name} adds the ending where it is missing.
        for place in (wanted, f"{wanted}.tex"):
            if (text := self._find(place)) is not None:
                with self.parser.deeper():
                    self._walk(self.parser.parsed(_divided(read_by_tex(text, self.parser.flags))[1]))
                return
        if PurePosixPath(wanted).suffix.lower() in ("", *_ENDINGS):
            self.missing.append(printable(Path(wanted)))

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
        if text := " ".join(on_the_line(joined_lines("".join(self._begun))).split()).removeprefix(". "):
            self._lines.append((None, text))
        self._begun = []


def _divided(source: str) -> tuple[str, str]:
    """Return the preamble and the document of a file; all of a file without a document is one."""
    begun = _BEGINS.search(source)
    preamble, body = (source[: begun.end()], source[begun.end() :]) if begun else ("", source)
    ended = _ENDS.search(body) if begun else None
    return preamble.removesuffix(BEGIN), body[: ended.end()].removesuffix("\\end{document}") if ended else body


def _inside(group: Any) -> str:
    return str(group.latex_verbatim()).strip("{} ")

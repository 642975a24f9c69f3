"""Takes out of a source of LaTeX what TeX does not read as text: drafts, listings and addresses."""

import re
from dataclasses import dataclass

from pyramidions.documents.latex_macros import HEADINGS
from pyramidions.files.bounded import MEBIBYTE

#: Most characters of all that is included: a file that includes itself twice, and so on, grows without end.
MOST = 4 * MEBIBYTE
# A comment, a macro, a sign, dollars, or the end of a paragraph.
_TOKEN = re.compile(r"%[^\n]*|\\([A-Za-z]+)\*?|\\.|\$\$?|\n[ \t]*(?=\n)", re.DOTALL)
_NAME = re.compile(r"\s{0,9}\{([A-Za-z]{1,30}\*?)\}")
#: Environments that TeX reads letter by letter up to their end.
VERBATIM = frozenset(
    """
    verbatim verbatim* Verbatim Verbatim* BVerbatim LVerbatim lstlisting lstlisting* minted alltt comment filecontents
    filecontents* spverbatim luacode luacode* pycode sagesilent sageblock tcblisting asy
    """.split()  # noqa: SIM905, a list has a line for each word
)
# Macros of the same kind, of code and of addresses; an option or a language may stand before the code.
_CODE, _ADDRESSES = ("verb", "lstinline", "mintinline", "Verb"), ("url", "path", "nolinkurl", "href")
_OPTIONS = re.compile(r"(?:\[[^\[\]\n]{0,200}\])?")
_BRACED = re.compile(r"\s{0,9}\{((?:[^{}\\]|\\.|\{[^{}]*+\})*+)\}", re.DOTALL)
_QUOTES = "|!+=@~/;"
# Conditions of TeX; what else begins with \if ends with no \fi, unless \newif made it.
_CONDITIONS = frozenset(
    """
    if ifcat ifx ifcase ifnum ifdim ifodd ifvmode ifhmode ifmmode ifinner ifvoid ifhbox ifvbox ifeof iftrue iffalse
    ifdefined ifcsname iffontchar ifpdf ifxetex ifluatex ifPDFTeX
    """.split()  # noqa: SIM905
)
_NEW = re.compile(r"\s{0,9}\{?\\if([A-Za-z]+)\}?")
_SAME = re.compile(r"\s?(\d)(.)", re.DOTALL)
# What begins a formula: what ends it, and what stands for the sign if nothing does before the end of the paragraph, or
# of the section where the formula is a line of its own.
_FORMULAS = {"$": ("$", "\\$"), "\\(": ("\\)", ""), "\\[": ("\\]", "")}
_PRICE = re.compile(r" \$\d")
_SECTIONS = frozenset([*HEADINGS, "item"])


@dataclass
class _Condition:
    """An open condition: whether it holds, if that is known, and whether what follows is read."""

    holds: bool | None
    is_read: bool
    start: int  # behind it


def read_by_tex(source: str, flags: dict[str, bool]) -> str:
    r"""Return a source without listings, addresses and drafts, as ``\iffalse`` and a false ``\newif`` leave them out.

    The branches of other conditions all stay. Flags are those of ``\newif`` so far, and those of this source are added.
    """
    return _Scan(source, flags).text()


class _Scan:
    def __init__(self, source: str, flags: dict[str, bool]) -> None:
        self._source, self._flags = source, flags
        self._place = self._line_end = 0
        self._open: list[_Condition] = []
        self._unread = 0  # branches around that are not read
        self._endless: set[str] = set()
        self._found: list[str] = []
        self._formula = -1  # place of what begins the open formula in what was found

    def text(self) -> str:
        while token := _TOKEN.search(self._source, self._place):
            self._keep(self._source[self._place : token.start()])
            self._place = token.end()
            is_end = self._ends_formula(token[1] or "", token[0])
            self._keep(self._said(token[1] or "", token[0]))
            if not is_end and self._formula < 0 and token[0] in _FORMULAS and self._reads():
                self._formula = len(self._found) - 1
        self._keep(self._source[self._place :])
        self._ends_formula("section", "")
        # A condition that nothing ends leaves nothing out.
        unended = next((each.start for each in self._open if not each.is_read), None)
        return "".join(self._found) + (self._source[unended:] if unended is not None else "")

    def _reads(self) -> bool:
        return not self._unread

    def _keep(self, text: str) -> None:
        if self._reads():
            self._found.append(text)

    def _ends_formula(self, name: str, token: str) -> bool:
        """Whether a token is the end of the open formula; what began one that the paragraph ends did not begin it."""
        if self._formula < 0 or not self._reads():
            return False
        begun = self._found[self._formula]
        end, stands_for = _FORMULAS[begun]
        # Of two prices, the second begins no end of a formula.
        is_price = token == begun == "$" and _PRICE.match(self._source, self._place - 2) is not None
        is_over = is_price or name in _SECTIONS or (token.startswith("\n") and begun != "\\[")
        if is_over:
            self._found[self._formula] = stands_for
        if token == end or is_over:
            self._formula = -1
        return token == end and not is_price

    def _said(self, name: str, token: str) -> str:
        """Return what stays of a macro and of its arguments, and go behind them."""
        if name == "begin":
            return self._environment(token)
        if name in _CODE or name in _ADDRESSES:
            return self._letters(name, token)
        if name == "newif" and (made := _NEW.match(self._source, self._place)):
            self._flags[made[1]] = False
            self._place = made.end()
            return ""
        if name in _CONDITIONS or (name.startswith("if") and name[2:] in self._flags):
            return self._begin(name, token)
        if name in ("else", "fi") and self._open:
            last = self._open[-1]
            self._unread -= not last.is_read
            if name == "fi":
                self._open.pop()
            else:
                last.is_read, last.start = last.holds is not True, self._place
                self._unread += not last.is_read
            return token if last.holds is None else "{}" * (name == "fi")
        for ending, value in (("true", True), ("false", False)):
            if (flag := name.removesuffix(ending)) != name and flag in self._flags:
                # What a draft sets is not set.
                self._flags[flag] = value if self._reads() else self._flags[flag]
                return ""
        return "%" if token.startswith("%") else token

    def _begin(self, name: str, token: str) -> str:
        holds = {"iftrue": True, "iffalse": False}.get(name, self._flags.get(name[2:]))
        if name == "if" and (compared := _SAME.match(self._source, self._place)):
            holds = compared[1] == compared[2]
            self._place = compared.end(2 if holds else 1)
        self._open.append(_Condition(holds, holds is not False, self._place))
        self._unread += holds is False
        return token if holds is None else ""

    def _environment(self, token: str) -> str:
        name = _NAME.match(self._source, self._place)
        if name is None or name[1] not in VERBATIM:
            return token
        self._place = name.end()
        if name[1] in self._endless:
            return ""
        end = f"\\end{{{name[1]}}}"
        place = self._source.find(end, name.end())
        if place < 0:
            self._endless.add(name[1])
            return ""
        self._place = place + len(end)
        return "{}"

    def _letters(self, name: str, token: str) -> str:
        start = self._place if name == "verb" else _OPTIONS.match(self._source, self._place).end()  # type: ignore[union-attr]
        if name == "mintinline" and (language := _BRACED.match(self._source, start)):
            start = language.end()
        if name != "verb" and (braced := _BRACED.match(self._source, start)):
            code, self._place = braced[1], braced.end()
        else:
            quote = self._source[start : start + 1]
            if start >= self._line_end:
                line_end = self._source.find("\n", start)
                self._line_end = len(self._source) if line_end < 0 else line_end
            end = self._source.find(quote, start + 1, self._line_end)
            if not quote or quote.isspace() or quote.isalnum() or quote in "{}" or end < 0:
                return token
            code, self._place = self._source[start + 1 : end], end + 1
        if name in _ADDRESSES:
            return f"{token}{{}}"
        quote = next((each for each in _QUOTES if each not in code), "")
        return f"\\verb{quote}{code}{quote}" if quote and "\n" not in code else ""

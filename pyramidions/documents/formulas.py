"""Powers, indices, fractions and marks of notes on a line of text, alike from every format.

A reader puts marks around what does not stand on the line; `on_the_line` writes a line with marks as plain text.
"""

import re
from collections.abc import Sequence

#: Elements, as HTML and MathML name them, whose children stay apart; \binom of LaTeX does as well.
APART = frozenset(
    "msup msub msubsup mfrac mroot munder mover munderover mmultiscripts mfenced mtable mtr binom".split()  # noqa: SIM905
)
#: The mark that begins each of those and of others; it is no character of Unicode. A `note` only names a note or a
#: source; `power` and `index` are scripts of a formula behind what they belong to.
MARKS = {
    kind: chr(0xFDD0 + number)
    for number, kind in enumerate(
        ["sup", "sub", "note", "power", "index", "msqrt", "mspace", "mprescripts", *sorted(APART)]
    )
}
#: Begins a child of what is `APART`; ends any of them.
NEXT, END = "\ufdee", "\ufdef"
_KINDS = {mark: kind for kind, mark in MARKS.items()}
_ANY = "\ufdd0-\ufdef"
_MARK = re.compile(f"([{_ANY}])")
# Raised text in pieces is one, and lowered text; raised, a stroke and lowered are a fraction.
_SUP, _SUB = MARKS["sup"], MARKS["sub"]
_PIECES = re.compile(f"(?:{_SUP}[^{_ANY}]*{END}){{2,}}|(?:{_SUB}[^{_ANY}]*{END}){{2,}}")
_STROKE = re.compile(rf"{_SUP}\s*(\d+)\s*{END}\s?[/⁄∕]\s?(?:{_SUB}\s*(\d+)\s*{END}|(?<=⁄)(\d+))")
# Needs no brackets.
_ONE = re.compile(r"[-+]?√?[\w.,]*[-+]?|√?\([^()]*\)|.")
# Behind a number: a power, and the end of an ordinal.
_POWER = re.compile(r".*[\d+/×·-].*|[ijkmnpqtxyzA-Z\u0370-\u03ff]")
_ORDINAL = re.compile(r"st|nd|rd|th|er|re|[èe]me|[oa]s")
_SIGN = re.compile(r"(?<!\d)[−–‐‑]|[−‐‑]|–(?!\d)")
_PRICE, _CENTS = re.compile(r"[$€£¥]\s?\d+$"), re.compile(r"\d\d")
# Signs over or behind a base that belong to it.
_ACCENTS = frozenset("¯‾^~→←˙¨ˇ˘´`ˆ˜˚⏞⏟⃗′″‴'*∗†")
_DEGREE = ("∘", "°", "º", "˚")
# Names a note, alone or in brackets.
_NUMBER = r"[\d¹²³⁰⁴-⁹]{1,3}[a-z]?"
_NOTE = re.compile(rf"[(\[]?{_NUMBER}(?:\s?[,;–-]\s?{_NUMBER})*[)\]]?|[*†‡§¶‖#]+|\[[^\[\]]{{0,60}}\]|[a-z]")
_CLOSERS = '.,;:!?…"”’»%。、，！？」』）)'
_NO_LETTERS = re.compile(r"[\W\d_]+")
# Words that have powers.
_OF_POWERS = frozenset(
    """
    sin cos tan cot sec csc log exp det max min sinh cosh tanh alpha beta gamma delta epsilon eta theta kappa lambda rho
    sigma tau phi chi psi omega rad deg mol ppm bar pix inch inches foot feet yard mile miles acre pixel pixels meter
    meters metre metres metro metros metri mètre mètres arcsec arcmin day hour year unit units
    """.split()  # noqa: SIM905, a list has a line for each word
)
# Of formulas whose parts stand in a row: what is between them.
_BETWEEN = {"mfenced": ",", "binom": " ", "mtr": " ", "mtable": "; "}
# A white space: the scripts that follow stand before their base.
_BEFORE = "\u205f"
# Marks inside marks; what stands deeper is read as it is, so that the time stays linear in the text.
_DEEPEST = 16
# Formulas of LaTeX in a block of text, inline and in lines of their own. A backslash before a bracket is none of it.
_IN_TEXT = re.compile(
    r"(?<!\\)\\\(((?:[^\\\n]|\\[^()\n]){1,1000}+)\\\)|(?<![\\$])\$(?![\s$])([^$\n]{1,500}+)(?<!\s)\$(?![\d$])|"
    r"(?<!\\)\\\[((?:[^\\\n]|\\[^\[\]\n]){1,2000}+)\\\]|\$\$([^$\n]{1,2000}+)\$\$"
)
# What only formulas hold, and what they do not: an index stands behind one letter, as it does not in a_name_of_code.
_TEX = re.compile(r"[\^=]|(?<=[A-Za-z\d)}\]|])(?<![A-Za-z]{2})_|\\[A-Za-z ,;]")
_PROSE = re.compile(r"(?<![^\s])(?:[^\W\d_]{2,}+[,;]? ){3}")
# Characters before a mark that tell what it is.
_TAIL = 40


def marked(kind: str, *parts: str) -> str:
    """Return the parts of what does not stand on the line, with marks around them."""
    return "".join([MARKS[kind], *(f"{NEXT}{part}" if kind in APART else part for part in parts), END])


def on_the_line(text: str) -> str:
    """Return text without marks: 10^6, 10_2, m2, x^2, 1/2, √16, 8^(1/3). What is open at the end of a line ends there.

    Behind a number, raised text is its power; behind a word or a full stop, a raised number names a note and is left
    out.
    """
    return "\n".join(map(_on_one_line, text.split("\n"))) if _MARK.search(text) else text


def is_tex(text: str) -> bool:
    """Return whether a text between marks of formulas is one in LaTeX."""
    return _TEX.search(text) is not None and _PROSE.search(text) is None


def typeset(text: str) -> str:
    """Return the text of a page that typesets LaTeX with marks in place of its formulas."""

    def said(found: re.Match[str]) -> str:
        from pyramidions.documents.latex_formulas import formula_text

        formula = found[found.lastindex or 0]
        if " " in formula and not is_tex(formula):
            return found[0]
        return formula_text(formula) if found.lastindex in (1, 2) else ""

    return _IN_TEXT.sub(said, text)


def _on_one_line(line: str) -> str:
    line = _PIECES.sub(lambda found: marked(_KINDS[found[0][0]], _MARK.sub("", found[0])), line)
    line = _STROKE.sub(lambda found: marked("mfrac", found[1], found[2] or found[3]), line)
    pieces = _MARK.split(line)
    levels, too_deep = [_Level()], 0
    for number, piece in enumerate(pieces):
        if piece in _KINDS and len(levels) < _DEEPEST:
            levels.append(_Level(_KINDS[piece]))
        elif piece in _KINDS or (piece == END and too_deep):
            too_deep += 1 if piece in _KINDS else -1
        elif piece == NEXT:
            levels[-1].begin_part()
        elif piece == END and len(levels) > 1:
            inner = levels.pop()
            levels[-1].end(inner, pieces[number + 1][:1])
        elif piece != END:
            levels[-1].add(piece)
    while len(levels) > 1:
        inner = levels.pop()
        levels[-1].end(inner, "")
    return levels[0].parts[0]


class _Level:
    """What stands between two marks."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self._parts: list[list[str]] = [[]]
        self._tail = ""
        self._is_composed = self._names_note = False

    @property
    def parts(self) -> list[str]:
        """The texts of the children; all of the text where they do not stay apart."""
        parts = ["".join(part) for part in self._parts]
        return parts[1:] if self.kind in APART else parts

    def begin_part(self) -> None:
        if self.kind in APART:
            self._parts.append([])
            self._tail, self._is_composed = "", False

    def add(self, text: str, *, is_composed: bool = False) -> None:
        if text:
            # Digits of two numbers are not joined.
            if (is_composed or self._is_composed) and self._tail[-1:].isdigit() and text[0].isdigit():
                text = f" {text}"
            self._parts[-1].append(text)
            self._tail = (self._tail + text[-_TAIL:])[-_TAIL:]
            self._is_composed = is_composed or (self._is_composed and text.isspace())

    def end(self, inner: "_Level", after: str) -> None:
        """End an inner level; `after` is the character behind it."""
        if inner.kind in APART or inner.kind.startswith("m"):
            self.add(_composed(inner.kind, inner.parts), is_composed=True)
            return
        (text,) = inner.parts
        said = text.strip()
        # Some marks of notes stand between brackets and commas that are none.
        names_note = (
            (inner.kind == "note" and _NOTE.fullmatch(said) is not None)
            or (inner._names_note and not any(map(str.isalnum, said)))
            or (inner.kind == "sup" and _is_note(self._tail, said, after))
        )
        self._names_note |= names_note
        if names_note or not said:
            self.add(" " if text[-1:].isspace() or (names_note and after.isalnum()) else "")
            return
        # Raised text may stand apart from its number, but not from other raised text.
        before = self._tail if self._is_composed else self._tail.rstrip()
        if inner.kind in ("sub", "index"):
            written = _lowered(before, said, in_formula=inner.kind == "index")
        else:
            written = _raised(before, said, after, in_formula=inner.kind == "power")
        if written.startswith("^"):
            self._strip()
        self.add(text if written == said else f"{written}{text[len(text.rstrip()) :]}", is_composed=True)

    def _strip(self) -> None:
        """Remove the spaces at the end."""
        part = self._parts[-1]
        while part and not (kept := part.pop().rstrip()):
            pass
        if self._tail.strip():
            part.append(kept)


def _raised(before: str, said: str, after: str, *, in_formula: bool) -> str:
    number = before[-1:].isdigit()
    signed = _SIGN.sub("-", said)
    if said in _DEGREE or (said == "o" and number and after in ("C", "F")):
        return "°"
    if _PRICE.search(before) and _CENTS.fullmatch(said):
        return f".{said}"
    is_power = (number and _POWER.fullmatch(signed)) or (before[-1:] in (")", "]") and signed[-1].isdigit())
    return f"^{_grouped(signed)}" if is_power or (in_formula and not (number and _ORDINAL.fullmatch(said))) else said


def _lowered(before: str, said: str, *, in_formula: bool) -> str:
    return f"_{_grouped(said)}" if in_formula or (before[-1:].isdigit() and said[0].isdigit()) else said


def _is_note(before: str, said: str, after: str) -> bool:
    """Return whether raised text names a note or a source, behind a word or a full stop."""
    if not _NOTE.fullmatch(said):
        return False
    ended = before.rstrip()
    # Apart from the text before it, a raised number may belong to what follows, as in 14C.
    if said[0] == "[" or not ended or (ended != before and (after.isalnum() or ended[-1].isdigit())):
        return said[0] == "["
    word = _NO_LETTERS.split(ended.rstrip(_CLOSERS))[-1]
    if ended[-1] in _CLOSERS and ended[-1] not in ")）":
        # 1.a and N.o are numbers in some languages, and Mag.a is a title.
        return not said.isalpha() or (len(word) > 3 and word.islower())
    if said.isalpha():
        return False
    # A short word of capitals may be a substance whose atoms are numbered.
    least = 3 if word.islower() or ended != before or not any(map(str.isdigit, said)) else 4
    return len(word) >= least and word.lower() not in _OF_POWERS


def _composed(kind: str, parts: Sequence[str]) -> str:
    """Return what a formula says on a line."""
    if kind in ("mspace", "mprescripts"):
        return " " if kind == "mspace" else _BEFORE
    texts = [_SIGN.sub("-", part.strip(" \t")) for part in parts]
    if kind in _BETWEEN:
        row = _BETWEEN[kind].join(texts)
        return f"({row})" if kind in ("mfenced", "binom") else row
    if kind == "mmultiscripts":
        return _with_scripts([_grouped(text) for text in texts])
    first, *others = map(_grouped, texts or [""])
    if kind in ("msqrt", "mroot"):
        return f"{first}^(1/{''.join(others)})" if any(others) else f"√{first}"
    if kind == "mfrac":
        return "/".join([first, *others])
    return first + "".join(
        _script(sign, first, text, stands_apart=kind[1] in "uo")
        for sign, text in zip("^" if kind in ("msup", "mover") else "_^", others, strict=False)
    )


def _script(sign: str, base: str, text: str, *, stands_apart: bool = False) -> str:
    """Return what stands at a base; it stands apart where it is a limit below, or above."""
    if text in _DEGREE:
        return "°"
    if stands_apart and base.isdigit() and text not in _ACCENTS:
        return f" {text}"
    joins = sign == "_" and not stands_apart and text[:1].isdigit() and not base[-1:].isdigit()
    return text if joins or not text or text in _ACCENTS else f"{sign}{text}"


def _with_scripts(texts: Sequence[str]) -> str:
    base, *scripts = texts or [""]
    place = scripts.index(_BEFORE) if _BEFORE in scripts else len(scripts)
    below, above = "".join(scripts[place + 1 :: 2]), "".join(scripts[place + 2 :: 2])
    behind = zip("_^" * place, scripts[:place], strict=False)
    said = f"{above}_{below}" if above and below else above + below
    return said + base + "".join(_script(sign, base, text) for sign, text in behind)


def _grouped(text: str) -> str:
    return text if _ONE.fullmatch(text) else f"({text})"

"""Powers, fractions and roots on a line of text, alike from every format."""

import re
from collections.abc import Sequence

#: Elements of HTML and MathML whose text does not stand on the line.
COMPOSED = frozenset(["sup", "msup", "msubsup", "mfrac", "msqrt", "mroot"])
#: Those whose children mean different things.
WITH_PARTS = frozenset(["msup", "msubsup", "mfrac", "mroot"])
_POWER = re.compile(r"[-+]?\d+[-+]?|[-+]")
_ONE = re.compile(r"[-+−–]?\w*|\([^()]*\)")
_SIGNS = str.maketrans("−–", "--")


def raised(before: str, text: str) -> str:
    """Return raised text with a ^ if it is the power of a number, as in 10^6; digits may follow a sign alone."""
    power = text.translate(_SIGNS).lstrip()
    return f"^{power}" if before[-1:].isdigit() and _POWER.fullmatch(power.rstrip()) else text


def composed(tag: str, parts: Sequence[str], before: str) -> str:
    """Return what an element says on a line, behind the text before it: 10^6, x^2, 1/2, √16, 8^(1/3).

    Parts are the texts of its children if it is one of `WITH_PARTS`, else all of its text.
    """
    if tag == "sup":
        return raised(before, "".join(parts))
    first, *others = [_grouped(part.strip().translate(_SIGNS)) for part in parts or [""]]
    if tag == "msqrt":
        return f"√{first}"
    if tag == "mroot":
        return f"{first}^(1/{''.join(others)})"
    if tag == "mfrac":
        # 2½ is 2 1/2.
        return " " * before[-1:].isdigit() + "/".join([first, *others])
    return "^".join([first, *others[-1:]] if tag == "msup" else [first + "".join(others[:-1]), *others[-1:]])


def _grouped(text: str) -> str:
    return text if _ONE.fullmatch(text) else f"({text})"

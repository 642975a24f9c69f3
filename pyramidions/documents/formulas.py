"""Powers, fractions and roots on a line of text, alike from every format."""

import re
from collections.abc import Sequence

#: Elements of HTML and MathML whose text does not stand on the line.
COMPOSED = frozenset(["sup", "msup", "mfrac", "msqrt", "mroot"])
#: Those whose children mean different things.
WITH_PARTS = frozenset(["msup", "mfrac", "mroot"])
_POWER = re.compile(r"[-+−–]?\d+|[-+−–]")
_ONE = re.compile(r"[-+−–]?\w*")


def raised(before: str, text: str) -> str:
    """Return raised text with a ^ if it is the power of a number, as in 10^6.

    Args:
        before: what stands in front of it.
        text: a sign alone may have its digits behind it.
    """
    bare = text.strip()
    return f"^{bare}" if before[-1:].isdigit() and _POWER.fullmatch(bare) else text


def composed(tag: str, parts: Sequence[str], before: str) -> str:
    """Return what an element says on a line: 10^6, x^2, 1/2, √16.

    Args:
        tag: one of `COMPOSED`.
        parts: the text of each of its children, if it is one of `WITH_PARTS`; else all of it.
        before: what stands in front of it.
    """
    if tag == "sup":
        return raised(before, "".join(parts))
    parts = [part.strip() for part in parts]
    if tag in ("msqrt", "mroot"):
        # Behind the number in a root stands its index.
        return "√" + _grouped("".join(parts if tag == "msqrt" else parts[:1]))
    top, *bottom = map(_grouped, parts or [""])
    # 2½ is 2 1/2.
    space = " " if tag == "mfrac" and before[-1:].isdigit() else ""
    return space + ("^" if tag == "msup" else "/").join([top, *bottom])


def _grouped(text: str) -> str:
    return text if _ONE.fullmatch(text) else f"({text})"

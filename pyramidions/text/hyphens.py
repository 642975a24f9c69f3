"""Tells what becomes of a hyphen at the end of a line."""

import re
from collections.abc import Mapping

_WORD, _PARTS = re.compile(r"(?<![^\W\d_])[^\W\d_]+$"), re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# A hyphen before these stands for a part of a word that comes later, as in "Honig- und Wachsernte".
_JOINED_BY = frozenset({"und", "oder", "bzw", "sowie", "and", "och", "og", "eller"})
# English words that begin compounds, and what stands behind them in words without a hyphen.
_BEGIN_COMPOUNDS = frozenset("self well long short high low half cross large small two three four five".split())  # noqa: SIM905, shorter
_END_WORDS = re.compile(
    r"ish|ness|er|est|ing|age|evity|itude|ly|light|land|way|time|over|road|less|fold|teen|some|com|cut|hand|list|en|us"
)
# "the" in "state-of-the".
_SHORT = 3


def joint(before: str, behind: str, known: Mapping[str, int] | None = None) -> str:
    """Return what stands between the parts of a word that a line's end cuts at a hyphen: "-", "- " or nothing.

    The hyphen goes where the whole word is known, and stays where only the compound is. If neither is, it goes between
    letters in lower case, but not inside of longer compounds, and not behind words such as "self".

    Args:
        before: the line up to the hyphen.
        behind: the next line, which begins with a word.
        known: how often words and compounds stand in the document, in lower case; None if that is not known.
    """
    begin, rest = _WORD.search(before), _PARTS.match(behind)
    if rest and rest[0] in _JOINED_BY:
        return "- "
    if not begin or not rest or not begin[0][-1].islower() or not rest[0][0].islower():
        return "-"
    compound, last = _PARTS.findall(before)[-1].lower(), rest[0].lower()
    if known and (whole := known.get(compound + last, 0)) + known.get(f"{compound}-{last}", 0):
        return "" if whole else "-"
    is_inside = begin.start() > 0 and before[begin.start() - 1] == "-" and len(begin[0]) <= _SHORT
    is_compound = begin[0].lower() in _BEGIN_COMPOUNDS and not _END_WORDS.match(rest[0])
    return "-" if is_inside or is_compound else ""

"""Reads formulas that Word keeps in fields, as EQ \\f(1;2) (Office Open XML, ECMA-376, part 1, section 17.16.5)."""

import re

from lxml import etree

from pyramidions.documents.formulas import marked
from pyramidions.documents.xml_tree import attribute

# How a reading is set: \* jc2 \* "Font:MS Mincho" \* hps10.
_FORMAT = re.compile(r"\\\*\s?(?:\"[^\"\\]*+\"|[^\s\\]++)")
# A switch with its length in points, a sign, or text.
_PIECE = re.compile(r"\\([a-z]{1,2})\d{0,3}\s?|\\(.)|([();,])|([^\\();,]+)", re.IGNORECASE | re.DOTALL)
# Switches and options, by what a formula of MathML calls what they draw.
_KINDS = {"f": "mfrac", "r": "mroot", "a": "mtable", "up": "power", "do": "index"}
_SIGNS = {"su": "∑", "pr": "∏"}


def mend_fields(root: etree._Element, word: str) -> None:
    """Put the text of formulas in place of their fields, with marks; `word` is the namespace."""
    open_fields: list[list[etree._Element]] = []
    for each in list(root.iter(*(f"{word}{tag}" for tag in ("fldSimple", "fldChar", "instrText")))):
        kind = attribute(each, "fldCharType")
        if instruction := attribute(each, "instr"):
            _replace([each], instruction, word)
        elif kind == "begin":
            open_fields.append([])
        elif kind == "end" and open_fields:
            pieces = open_fields.pop()
            _replace(pieces, "".join(piece.text or "" for piece in pieces), word)
        elif not kind and open_fields:
            open_fields[-1].append(each)


def _replace(pieces: list[etree._Element], instruction: str, word: str) -> None:
    name, _, formula = instruction.strip().partition(" ")
    if name.upper() == "EQ":
        run = etree.Element(f"{word}r")
        etree.SubElement(run, f"{word}t").text = formula_of(formula)
        pieces[0].getparent().replace(pieces[0], run if pieces[0].tag == f"{word}fldSimple" else run[0])


def formula_of(instruction: str) -> str:
    """Return the text of a formula with marks."""
    formula = _FORMAT.sub("", instruction)
    separator = ";" if ";" in formula else ","
    levels: list[tuple[list[str], list[str]]] = [([], [""])]  # switches, and what stands between separators
    switches: list[str] = []
    for found in _PIECE.finditer(f"{formula}{')' * formula.count('(')}"):
        switch, escaped, sign, text = found.groups()
        if switch:
            switches.append(switch.lower())
        elif sign == "(":
            levels.append((switches, [""]))
            switches = []
        elif sign == separator and levels[-1][0]:
            levels[-1][1].append("")
        elif sign != ")" or len(levels) > 1:
            said = _drawn(*levels.pop()) if sign == ")" else escaped or sign or text
            levels[-1][1][-1] += said
    return levels[0][1][0].strip()


def _drawn(switches: list[str], parts: list[str]) -> str:
    """Return what a switch draws of its parts, with marks; a bracket without a switch is one."""
    kind = next((_KINDS[switch] for switch in switches if switch in _KINDS), "")
    if switches[:1] == ["i"]:
        sign = next((_SIGNS[switch] for switch in switches if switch in _SIGNS), "∫")
        return marked("munderover", sign, *parts[:2]) + " ".join(["", *parts[2:]])
    if switches[:1] == ["o"]:
        return parts[-1]  # a reading stands over it
    if kind == "mroot":
        return marked("mroot", *parts[::-1]) if len(parts) > 1 else marked("msqrt", *parts)
    if kind:
        return marked(kind, *parts)
    return ",".join(parts) if switches[:1] not in ([], ["b"]) else f"({','.join(parts)})"

"""Reads formulas that Word keeps in fields, as EQ \\f(1;2) (Office Open XML, ECMA-376, part 1, section 17.16.5)."""

import re

from lxml import etree

from pyramidions.documents.formulas import marked
from pyramidions.documents.xml_tree import attribute

_FORMULA = re.compile(r"\s*EQ\s+", re.IGNORECASE)
# How a reading is set: \* jc2 \* "Font:MS Mincho" \* hps10.
_FORMAT = re.compile(r"\\\*\s*(?:\"[^\"]*\"|\S+)")
# A switch with its length in points, a sign, or text.
_PIECE = re.compile(r"\\([a-z]{1,2})\d*\s*|\\(.)|([();,])|([^\\();,]+)", re.IGNORECASE | re.DOTALL)
# Switches and options, by what a formula of MathML calls what they draw.
_KINDS = {"f": "mfrac", "r": "mroot", "a": "mtable", "up": "power", "do": "index"}
_SIGNS = {"i": "∫", "su": "∑", "pr": "∏"}


def mend_fields(root: etree._Element, word: str) -> None:
    """Put the text of formulas in place of their fields, with marks; `word` is the namespace."""
    for field in list(root.iter(f"{word}fldSimple")):
        if _FORMULA.match(attribute(field, "instr")):
            etree.SubElement(field, f"{word}r").append(_text(attribute(field, "instr"), word))
    open_fields: list[list[etree._Element]] = []
    for each in list(root.iter(f"{word}fldChar", f"{word}instrText")):
        kind = attribute(each, "fldCharType")
        if kind == "begin":
            open_fields.append([])
        elif not kind and open_fields:
            open_fields[-1].append(each)
        elif kind == "end" and open_fields and (pieces := open_fields.pop()):
            instruction = "".join(piece.text or "" for piece in pieces)
            if _FORMULA.match(instruction):
                pieces[0].getparent().replace(pieces[0], _text(instruction, word))


def _text(instruction: str, word: str) -> etree._Element:
    text = etree.Element(f"{word}t")
    text.text = formula_of(instruction)
    return text


def formula_of(instruction: str) -> str:
    """Return the text of a formula with marks."""
    formula = _FORMAT.sub("", _FORMULA.sub("", instruction, count=1))
    separator = ";" if ";" in formula else ","
    levels: list[tuple[list[str], list[str]]] = [([], [""])]  # switches, and what is said between separators
    switches: list[str] = []
    for found in _PIECE.finditer(formula):
        switch, escaped, sign, text = found.groups()
        if switch:
            switches.append(switch.lower())
        elif sign == "(":
            levels.append((switches, [""]))
            switches = []
        elif sign == separator and levels[-1][0]:
            levels[-1][1].append("")
        elif sign == ")" and len(levels) > 1:
            said = _drawn(*levels.pop())
            levels[-1][1][-1] += said
        else:
            levels[-1][1][-1] += escaped or sign or text
    while len(levels) > 1:
        said = _drawn(*levels.pop())
        levels[-1][1][-1] += said
    return levels[0][1][0].strip()


def _drawn(switches: list[str], parts: list[str]) -> str:
    """Return what a switch draws of its parts, with marks; a bracket without a switch is one."""
    kind = next((_KINDS[switch] for switch in switches if switch in _KINDS), "")
    if switches[:1] == ["i"]:
        sign = next((_SIGNS[switch] for switch in switches[1:] if switch in _SIGNS), _SIGNS["i"])
        return marked("munderover", sign, *parts[:2]) + " ".join(["", *parts[2:]])
    if switches[:1] == ["o"]:
        return parts[-1]  # a reading stands over it
    if kind == "mroot":
        return marked("mroot", *parts[::-1]) if len(parts) > 1 else marked("msqrt", *parts)
    if kind:
        return marked(kind, *parts)
    joined = ",".join(parts)
    return joined if switches and switches[0] != "b" else f"({joined})"

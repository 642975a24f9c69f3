"""Reads formulas that Word keeps in fields, as EQ \\f(1;2) (Office Open XML, ECMA-376, part 1, section 17.16.5)."""

import re

from lxml import etree

from pyramidions.documents.formulas import marked
from pyramidions.documents.xml_tree import attribute

# How a reading is set: \* jc2 \* "Font:MS Mincho" \* hps10.
_FORMAT = re.compile(r"\\\*\s?(?:\"[^\"\\]*+\"|[^\s\\]++)")
# A sign that stands for itself: a bracket to draw, as in \lc\{, or what would end or part what is drawn.
_SIGN = re.compile(r"(?<=\\[lrbfv]c) ?\\(.)|\\([(),;])", re.IGNORECASE)
# What a switch and its options draw, with nothing in brackets inside; and signs that stay.
_DRAWN = re.compile(r"((?:\\(?:[lrbfv]c[^\\ (]|[a-z]{1,2} ?-?[0-9]{0,3}) ?){0,8})\(([^()]*)\)", re.IGNORECASE)
_OPTION = re.compile(r"\\([lrbfv]c|[a-z]{1,2})([^\\\w -]?)")
_SIGNS, _KEPT, _DEEPEST = "(),;", "\ue000\ue001\ue002\ue003", 16
_STAY, _KEEP = str.maketrans(_KEPT, _SIGNS), str.maketrans(_SIGNS, _KEPT)
# Switches and options, by what a formula of MathML calls what they draw.
_KINDS = {"f": "mfrac", "r": "mroot", "a": "mtable", "up": "power", "do": "index"}
_CLOSING = {"{": "}", "[": "]", "<": ">", _KEPT[0]: _KEPT[1]}


def mend_fields(root: etree._Element, word: str) -> None:
    """Put the text of formulas in place of their fields, with marks; `word` is the namespace."""
    open_fields: list[list[etree._Element]] = []
    for each in list(root.iter(*(f"{word}{tag}" for tag in ("fldSimple", "fldChar", "instrText")))):
        kind, pieces = attribute(each, "fldCharType"), [each]
        if kind == "begin":
            open_fields.append([])
        elif not kind and open_fields:
            open_fields[-1].append(each)
        elif kind == "end" and open_fields:
            pieces = open_fields.pop()
        name, _, formula = (
            "".join(attribute(piece, "instr") or piece.text or "" for piece in pieces).strip().partition(" ")
        )
        if name.upper() == "EQ" and (kind == "end" or not open_fields):
            run = etree.Element(f"{word}r")
            etree.SubElement(run, f"{word}t").text = _formula(formula)
            pieces[0].getparent().replace(pieces[0], run if pieces[0].tag == f"{word}fldSimple" else run[0])


def _formula(text: str) -> str:
    """Return the text of a formula with marks, from the inside out."""
    text, separator, found = _FORMAT.sub("", text), ";" if ";" in text else ",", 1
    text = _SIGN.sub(lambda sign: (sign[1] or sign[2]).translate(_KEEP), text)
    text += ")" * (text.count("(") - text.count(")"))
    for _ in range(_DEEPEST if "(" in text else 0):
        text, found = _DRAWN.subn(lambda drawn: _drawn(drawn[1], drawn[2].split(separator)), text)
        if not found:
            break
    return text.translate(_STAY).strip()


def _drawn(switches: str, parts: list[str]) -> str:
    options = dict(_OPTION.findall(switches.lower()))
    switch, kind = next(iter(options), ""), next((_KINDS[each] for each in options if each in _KINDS), "")
    if switch == "o":
        return parts[-1]  # a reading stands over it
    if kind:
        return marked(kind, *(parts[::-1] if kind == "mroot" else parts))
    joined = ",".join(parts)
    if switch in ("", "b"):
        both = options.get("bc", "" if len(options) > 1 else _KEPT[0])
        return f"{options.get('lc', both)}{joined}{options.get('rc', _CLOSING.get(both, both))}"
    return joined

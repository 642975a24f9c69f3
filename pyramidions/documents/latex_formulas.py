"""Writes what a parser found in formulas of LaTeX as text, with the marks of `formulas`."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any

from pylatexenc import latex2text, latexwalker, macrospec

from pyramidions.documents import latex_macros as macros
from pyramidions.documents.formulas import MARKS, marked

_KINDS = {"^": "power", "_": "index"}
_SCRIPT, _OPEN = re.compile(r"([\^_])\s*([^\s^_])"), re.compile(r"([\^_])\s*$")
# A script with a sign, as in m^-1, stays one of the formula.
_BEGINS = re.compile(f"[{MARKS['power']}{MARKS['index']}](?![-+−])")
_BEGIN, _END = (f"\\{each}{{document}}" for each in ("begin", "end"))
#: Replaces a macro of the author by what it stands for, while the context is open; None if the author defined none.
_Replace = Callable[[Any], AbstractContextManager[Sequence[Any] | None]]


class Formulas(latex2text.LatexNodes2Text):
    """Turns nodes of the parser into text with marks."""

    def __init__(self, replace: _Replace | None = None) -> None:
        specs = latex2text.get_default_latex_context_db()
        ours = [
            latex2text.MacroTextSpec(name, partial(_said, kind=kind, texts=self))
            for name, (kind, _) in macros.COMPOSED.items()
        ]
        ours += [latex2text.MacroTextSpec(name, sign) for name, sign in macros.SIGNS.items()]
        ours.append(latex2text.MacroTextSpec("overline", partial(_overlined, texts=self)))
        specs.add_context_category("ours", prepend=True, macros=ours)
        super().__init__(specs, math_mode="text", strict_latex_spaces=True)
        self._replace = replace

    def formula(self, nodes: Sequence[Any]) -> str:
        """Return the text of a formula; what it begins with belongs to the text before it."""
        text = " ".join(self.nodelist_to_text(nodes).split())
        first = next((node for node in nodes if getattr(node, "nodelist", None) != []), None)
        begun = _BEGINS.match(text) if getattr(first, "chars", "").lstrip()[:1] in _KINDS else None
        return MARKS["sup" if begun[0] == MARKS["power"] else "sub"] + text[1:] if begun else text

    def nodelist_to_text(self, nodelist: Sequence[Any]) -> str:
        for number, node in enumerate(nodelist):
            if kind := macros.BETWEEN.get(getattr(node, "macroname", "")):
                return marked(kind, *map(self.nodelist_to_text, (nodelist[:number], nodelist[number + 1 :])))
        said, script = [], ""
        for node in nodelist:
            if node is None or node.isNodeType(latexwalker.LatexCommentNode):
                continue
            if node.isNodeType(latexwalker.LatexCharsNode):
                text = node.chars
                if script and text.strip():
                    text, script = script + text.lstrip(), ""
                text = _SCRIPT.sub(lambda found: marked(_KINDS[found[1]], found[2]), text)
                if not script and (opened := _OPEN.search(text)):
                    text, script = text[: opened.start()], opened[1]
            else:
                text = self.node_to_text(node)
                text, script = marked(_KINDS[script], text) if script else text, ""
            said.append(text)
        return "".join([*said, script])

    def macro_node_to_text(self, node: Any) -> str:
        if self._replace is not None:
            with self._replace(node) as stands_for:
                if stands_for is not None:
                    return self.nodelist_to_text(stands_for)
        name, arguments = node.macroname, node.nodeargd.argnlist if node.nodeargd is not None else []
        if name in macros.SKIPPED_MACROS or name in macros.REFERENCES or name == "label":
            return ""
        if name in macros.LAST or self.latex_context.get_macro_spec(name) is None:
            said = [each for each in arguments or [] if each is not None and each.latex_verbatim()[:1] != "["]
            return self.nodelist_to_text(said[-1:] if name in macros.LAST else said)
        return str(super().macro_node_to_text(node))


def _said(node: Any, *, kind: str, texts: Formulas) -> str:
    arguments = node.nodeargd.argnlist if node.nodeargd is not None else []
    *options, said = [each for each in arguments if each is not None] or [None]
    parts = [texts.nodelist_to_text(getattr(each, "nodelist", [each])) for each in [*options, said] if each is not None]
    if kind == "mroot":
        parts = parts[::-1]
    elif kind != "msqrt":
        parts = parts[-2:]
    return marked(kind, *parts)


def _overlined(node: Any, *, texts: Formulas) -> str:
    text = texts.nodelist_to_text(node.nodeargd.argnlist[-1:] if node.nodeargd is not None else [])
    # As the library writes \bar; a line over several signs has no character.
    return f"{text}\u0305" if len(text) == 1 else text


def specs() -> Any:
    """Return what the parser knows of macros and environments."""
    known = latexwalker.get_default_latex_context_db()
    ours = [macrospec.MacroSpec(macro, arguments) for macro, arguments in macros.ARGUMENTS.items()]
    environments = [macrospec.EnvironmentSpec(name, arguments) for name, arguments in macros.ENVIRONMENTS.items()]
    known.add_context_category("ours", prepend=True, macros=ours, environments=environments)
    known.set_unknown_environment_spec(macrospec.EnvironmentSpec("", "["))
    return known


@cache
def _alone() -> tuple[Any, Formulas]:
    return specs(), Formulas()


def formula_text(source: str) -> str:
    """Return a formula as text with marks; it may stand between dollars, and be all of a document."""
    inside = source.rpartition(_BEGIN)[2].partition(_END)[0].strip()
    known, texts = _alone()
    try:
        nodes, _, _ = latexwalker.LatexWalker(inside.strip("$"), known, tolerant_parsing=True).get_latex_nodes()
        return texts.formula(nodes)
    # What is no LaTeX can make the library raise any error.
    except Exception:
        return inside

"""The language of parts: ``blockwise(block_size=512)``, ``|`` between layers, ``;`` between memories."""

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError


@dataclass(frozen=True)
class Part:
    """A kind of one axis, by its name in the axis's registry, with its options."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))


#: The parts of one axis: a list for each memory, with a part for each unit. One entry stands for all.
Parts = list[list[Part]]

#: Stands for no part, on axes that allow it.
NONE = "none"

_LONGEST = 100_000  # characters of a field
_DIGITS = 18  # of a whole number: it fits into 64 bits
_PAIRS = {")": "(", "]": "[", "}": "{"}


def parse_parts(name: str, text: str) -> Parts:
    """Parse a text such as ``sliding_window(window=256) | lsh(bucket_size=64)``; options are Python literals.

    A UserError calls it by its field's name, and says that it has another form, or that a number is not finite.
    """
    if len(text) > _LONGEST:
        raise UserError(f"`{name}` must have at most {_LONGEST:,} characters, but has {len(text):,}.")
    return [[_part(name, entry.strip()) for entry in _split(name, memory, "|")] for memory in _split(name, text, ";")]


def parse_part(name: str, text: str) -> Part:
    """Parse a field of a single part; errors are those of `parse_parts`, or that there are several."""
    parts = parse_parts(name, text)
    if len(parts) > 1 or len(parts[0]) > 1:
        raise UserError(f"`{name}` must be one part, but is {shown(text)}.")
    return parts[0][0]


def parse_list(name: str, text: str) -> list[Part]:
    """Parse the field ``name``, which describes parts with commas in between; errors are those of `parse_parts`."""
    return [_part(name, entry.strip()) for entry in _split(name, text, ",")]


def parse_options(name: str, text: str) -> dict[str, Any]:
    """Parse a field with options of one thing, ``beam=4, min_len=2``; errors are those of `parse_parts`."""
    return _options(name, text, text, "option=value, other=value")


def kinds_of(name: str, text: str) -> list[list[str]]:
    """Return the kinds of parts of the field ``name``, a list for each memory; errors are those of `parse_parts`."""
    return [[part.kind for part in memory] for memory in parse_parts(name, text)]


def written_parts(parts: Parts) -> str:
    """Return the text that `parse_parts` reads."""
    return "; ".join(" | ".join(map(written, memory)) for memory in parts)


def written(part: Part) -> str:
    """Return the text of a part."""
    options = ", ".join(f"{name}={value!r}" for name, value in part.options.items())
    return f"{part.kind}({options})" if options else part.kind


def changed(name: str, text: str, change: Callable[[Part], Part]) -> str:
    """Return the field ``name`` with each of its parts changed."""
    parts = parse_parts(name, text)
    new = [[change(part) for part in memory] for memory in parts]
    return text if new == parts else written_parts(new)


def lengths_in(text: str) -> list[str]:
    """Return the entries of a list of pooled lengths, in brackets or not: numbers, and "None" however it is spelled."""
    entries = (entry.strip() for entry in text.strip().strip("[]()").split(","))
    return ["None" if entry.lower() in ("none", "null") else entry for entry in entries]


def _split(name: str, text: str, separator: str) -> Iterator[str]:
    """Split a text where the separator stands outside of brackets and quotes."""
    opened: list[str] = []
    quote, escaped, start = "", False, 0
    for place, character in enumerate(text):
        if quote:
            if not escaped and character == quote:
                quote = ""
            escaped = character == "\\" and not escaped
        elif character in "'\"" and opened:
            quote = character
        elif character in "([{":
            opened.append(character)
        elif character in _PAIRS:
            if not opened or opened.pop() != _PAIRS[character]:
                raise UserError(f"`{name}` has a {character!r} that closes nothing: {shown(text.strip())}.")
        elif character == separator and not opened:
            yield text[start:place]
            start = place + 1
    if opened or quote:
        raise UserError(f"`{name}` has a {quote or opened[-1]!r} that is not closed: {shown(text.strip())}.")
    yield text[start:]


def _part(name: str, text: str) -> Part:
    kind, bracket, inside = text.partition("(")
    kind = kind.strip()
    return Part(kind, _options(name, text, inside.removesuffix(")"), f"{kind}(option=value)") if bracket else {})


def _options(name: str, text: str, inside: str, form: str) -> dict[str, Any]:
    """Parse the inside of a bracket."""
    try:
        # No comment hides the bracket on the next line.
        call: Any = ast.parse(f"f({inside}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    # `a(b=1)(c=2)` is a call of a call.
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise UserError(f"`{name}` must be like {form}, but is {shown(text)}.")
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise UserError(f"`{name}` must name each option, as in {form}, but is {shown(text)}.")
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg in options:
            raise UserError(f"`{name}` must name each option once, but is {shown(text)}.")
        try:
            options[str(keyword.arg)] = _checked(ast.literal_eval(keyword.value))
        except (ValueError, TypeError, RecursionError, MemoryError):
            raise UserError(
                f"The option {keyword.arg!r} in `{name}` must be a number, a text in quotes, True, False, None, or a "
                f"list of these, but the text is {shown(text)}."
            ) from None
    return options


def _checked(value: Any) -> Any:
    """Return a literal of the kinds that options have, tuples as lists; a ValueError refuses others."""
    if isinstance(value, list | tuple):
        return [_checked(entry) for entry in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _checked(entry) for key, entry in value.items()}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < 10**_DIGITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError("no literal of an option")

"""Translates fields of 0.1 and 0.2, in which the options of a part were JSON in a field of their own."""

import logging
from collections.abc import Mapping
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_argument
from pyramidions.models.notation import Parts, lengths_in, parse_parts, written_parts
from pyramidions.models.spec import Part

logger = logging.getLogger(__name__)

#: Ends the names of fields that had options: `self_attention_args` those of `self_attention`.
ENDING = "_args"
#: Stands for no part, on axes that allow it.
NONE = "none"


def translate(values: Mapping[str, Any], defaults: Mapping[str, Any], warn: bool = True) -> dict[str, Any]:
    """Return fields in today's language.

    Args:
        values: fields by name, of any release.
        defaults: the fields that name parts, with what they are if not given.
        warn: of each field that is translated, with its new form.

    Raises:
        UserError: the options are not JSON, or their number does not match the parts.
    """
    options = {
        name: value
        for name, value in values.items()
        if name not in defaults and str(name).removesuffix(ENDING) in defaults
    }
    found = {name: value for name, value in values.items() if name not in options}
    if isinstance(lengths := found.get("pooling_lengths"), str):
        found["pooling_lengths"] = ",".join(lengths_in(lengths))
    for name, default in defaults.items():
        kinds, text = found.get(name, default), options.get(f"{name}{ENDING}")
        if text is not None and not isinstance(text, str):
            raise UserError(f"`{name}{ENDING}` must be a text, but is {shown(text)}.")
        if not isinstance(kinds, str | None):
            continue  # what `config_as` refuses
        if text is None and not is_older(kinds):
            if kinds is not None and name in found:
                found[name] = written_parts(parse_parts(name, kinds))
            continue
        several = name == "cross_attention" and "," in str(found.get("memories", ""))
        if kinds is None and parse_argument(text or "{}", f"{name}{ENDING}"):
            raise UserError(f"`{name}{ENDING}` is {shown(text)}, but `{name}` is not given.")
        new = kinds if kinds is None else _translated(name, kinds, text, several)
        if new != found.get(name, default):
            found[name] = new
            if warn:
                old = f"`{name}` with commas" if text is None else f"`{name}{ENDING}`"
                logger.warning("%s is read for one more release; write `%s` as %r.", old, name, new)
    return found


def is_older(text: str | None) -> bool:
    """Return whether a field lists kinds as 0.2 did, with commas."""
    return text is not None and "," in text and "(" not in text


def with_given(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a preset, changed by those that a user gave.

    Options in a field of their own replace all options that the preset gives to a part.

    Raises:
        UserError: as `refuse_both`.
    """
    refuse_both(given)
    values = {**base, **given}
    for name, text in given.items():
        part = str(name).removesuffix(ENDING)
        if part != name and text is not None and isinstance(base.get(part), str) and part not in given:
            values[part] = written_parts(_kinds(part, base[part]))
    return values


def refuse_both(given: Mapping[str, Any]) -> None:
    """Refuse options that are given twice, in today's language and in a field of their own.

    Raises:
        UserError: there are some.
    """
    for name, text in given.items():
        if text is not None and has_both(given, str(name)):
            raise UserError(f"`{name}` must not be given where `{name.removesuffix(ENDING)}` has options of its own.")


def has_both(values: Mapping[str, Any], name: str) -> bool:
    """Return whether ``name`` has options of a part which has options in today's language as well."""
    return name.endswith(ENDING) and "(" in str(values.get(name.removesuffix(ENDING), ""))


def _translated(name: str, kinds: str, text: str | None, several: bool) -> str:
    field = f"{name}{ENDING}"
    named = _kinds(name, kinds)
    if text is None:
        return written_parts(named)
    options = parse_argument(text, field)
    # Of several memories, options are those of all, or a list of those of each.
    listed = options if several and isinstance(options, list) else [options]
    count = max(len(named), len(listed))
    memories = zip(_spread(named, count, field, text), _spread(listed, count, field, text), strict=True)
    return written_parts([_memory(memory, own, field, text) for memory, own in memories])


def _kinds(name: str, text: str) -> Parts:
    """Return parts without options, of either language."""
    if is_older(text):
        return [[Part(kind.strip()) for kind in memory.split(",")] for memory in text.split(";")]
    return [[Part(part.kind) for part in memory] for memory in parse_parts(name, text)]


def kinds_of(name: str, text: str) -> list[list[str]]:
    """Return the kinds of parts of a field, of either language, a list for each memory."""
    return [[part.kind for part in memory] for memory in _kinds(name, text)]


def _memory(kinds: list[Part], options: Any, field: str, text: str) -> list[Part]:
    listed = options if isinstance(options, list) else [options]
    if not listed or not all(isinstance(entry, dict) for entry in listed):
        raise UserError(f"`{field}` must be a JSON object, or a list of them, but is {shown(text)}.")
    count = max(len(kinds), len(listed))
    pairs = list(zip(_spread(kinds, count, field, text), _spread(listed, count, field, text), strict=True))
    own = [{} if kind.kind == NONE and len(listed) == 1 < count else each for kind, each in pairs]
    return [Part(kind.kind, each) for (kind, _), each in zip(pairs, own, strict=True)]


def _spread(entries: list[Any], count: int, field: str, text: str) -> list[Any]:
    if len(entries) not in (1, count):
        raise UserError(f"`{field}` must have one entry, or one for each part, but is {shown(text)}.")
    return entries * (count // len(entries))

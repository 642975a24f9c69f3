"""Whether the weights of one config mean the same in another."""

from collections.abc import Mapping
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, lengths_in, parse_parts
from pyramidions.models.config import PyramidionConfig
from pyramidions.models.declared import part_fields
from pyramidions.nn.stack import STACK

_NAMES = (*part_fields(PyramidionConfig), "pooling_lengths", "memories")
#: Options, with their defaults, by which parts compute what 0.2.0 did. The same weights mean another model without.
_OF_0_2_0 = {"is_flat": False, "scaled": True}


def changed_part(before: Mapping[str, Any], now: Any) -> str | None:
    """Return the first field that names other kinds of parts than an earlier config did, or None.

    The layers of one model may be composed in another way, as memory allows, but not with another number of streams.

    Args:
        before: its fields, as far as they were known.
        now: has the fields as attributes, those of an extractor alone or all.
    """
    for name in _NAMES:
        if name in before and hasattr(now, name) and not _is_one_kind(name, before[name], getattr(now, name)):
            return name
    return None


def _is_one_kind(name: str, before: Any, now: Any) -> bool:
    if before is None or now is None or name == "memories":
        return bool(before == now)
    if name == "pooling_lengths":
        return lengths_in(before) == lengths_in(now)
    try:
        first, second = (_shortest([_shortest(memory) for memory in _compared(name, text)]) for text in (before, now))
    except UserError:
        return False  # one that cannot be read says so where it is read
    if name == "stack":
        streams = [STACK[each[0][0][0]].streams for each in (first, second) if each[0][0][0] in STACK]
        return len(streams) == 2 and streams[0] == streams[1]
    return first == second


def _compared(name: str, text: str) -> list[list[tuple[Any, ...]]]:
    """Return of each part what must stay, its kind first."""

    def compared(part: Part) -> tuple[Any, ...]:
        return (part.kind, *(part.options.get(option, default) for option, default in _OF_0_2_0.items()))

    return [[compared(part) for part in memory] for memory in parse_parts(name, text)]


def _shortest(entries: list[Any]) -> list[Any]:
    return entries[:1] if all(entry == entries[0] for entry in entries) else entries

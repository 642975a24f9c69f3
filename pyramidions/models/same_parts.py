"""Whether the weights of one config mean the same in another."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pyramidions.models.config import PyramidionConfig
from pyramidions.nn.stack import STACK

#: fields that say which kinds of parts a model has
_NAMES = (
    *(each.name for each in fields(PyramidionConfig) if hasattr(PyramidionConfig, f"{each.name}_args")),
    *("pooling_lengths", "memories"),
)


def changed_part(before: Mapping[str, Any], now: Any) -> str | None:
    """Return the first field by which a config has other kinds of parts than an earlier one, or None.

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
    if name == "stack" and {before, now} <= {*STACK.names}:
        return STACK[before].streams == STACK[now].streams
    return bool(before == now)

"""How a field of a config is declared: by its text and, where it describes parts, by the registry of their axis."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from pyramidions.base.notation import NONE, Part, Parts, parse_parts
from pyramidions.base.registry import Registry


def described(default: Any, text: str) -> Any:
    """Return a field that a text explains."""
    return field(default=default, metadata={"help": text})


def parts_field(
    default: str | None,
    registry: Registry[Any],
    text: str,
    kinds: tuple[str, ...] | None = None,
    optional: bool = False,
) -> Any:
    """Return a field that describes parts of one axis.

    Args:
        default: if the field is not given.
        registry: of the axis.
        text: explains the field.
        kinds: those that the field may name; None for all.
        optional: there need not be such a part.
    """
    names = (*([NONE] if optional else []), *(kinds or registry.names))
    said = {"text": text, "help": f"{text}: {', '.join(names)}"}
    return field(default=default, metadata={**said, "registry": registry, "optional": optional})


def part_fields(kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a kind of config that describe parts, with their defaults."""
    return {each.name: each.default for each in fields(kind) if "registry" in each.metadata}


def about(kind: type[Any], name: str) -> Mapping[str, Any]:
    """Return what `parts_field` says of a field: its "registry", and whether it is "optional"."""
    metadata: Mapping[str, Any] = kind.__dataclass_fields__[name].metadata
    return metadata


def _with_defaults(kind: type[Any], name: str, part: Part) -> Part:
    """Return a part of a field with all of its options, those that were left out at their defaults."""
    registry: Registry[Any] = about(kind, name)["registry"]
    if part.kind not in registry:
        return part
    given = {key: each.default for key, each in registry.arguments(part.kind).items() if each.default is not each.empty}
    return Part(part.kind, given | dict(part.options))


def parts_with_defaults(kind: type[Any], name: str, text: str) -> Parts:
    """Return the parts of a field with all of their options; errors are those of `parse_parts`."""
    return [[_with_defaults(kind, name, part) for part in memory] for memory in parse_parts(name, text)]


def per(each: str, order: str = "") -> str:
    """Return the remark that a field describes one part, or one for each unit."""
    return f"(one part, or one per {each} with | in between{', ' if order else ''}{order})"

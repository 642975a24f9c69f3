"""The fields of a flat config: how they are declared, and how their texts are read."""

from collections.abc import Callable, Sequence
from dataclasses import field, fields
from itertools import chain
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE, Part, Parts, changed, lengths_in, parse_parts, written
from pyramidions.base.registry import Registry
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.options import Role, is_window, options_of

_WIDTHS = ("embed_dim", "ffn_embed_dim")
_LENGTHS = ("max_source_positions", "max_target_positions", "decoding_min_length", "decoding_max_length")


def parts_field(
    default: str | None,
    registry: Registry[Any],
    text: str,
    kinds: tuple[str, ...] | None = None,
    optional: bool = False,
) -> Any:
    """Return a field that describes parts of one axis, of these ``kinds`` or all; ``optional`` if none may be."""
    names = (*([NONE] if optional else []), *(kinds or registry.names))
    said = {"text": text, "help": f"{text}: {', '.join(names)}"}
    return field(default=default, metadata={**said, "registry": registry, "optional": optional})


def per(each: str, order: str = "") -> str:
    """Return the remark that a field describes one part, or one for each unit."""
    return f"(one part, or one per {each} with | in between{', ' if order else ''}{order})"


def part_fields(kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a kind of config that describe parts, with their defaults."""
    return {each.name: each.default for each in fields(kind) if "registry" in each.metadata}


def _registry(kind: type[Any], name: str) -> Registry[Any]:
    return kind.__dataclass_fields__[name].metadata["registry"]


def parts_with_defaults(kind: type[Any], name: str, text: str) -> Parts:
    """Return the parts of a field with all of their options, those that were left out at their defaults."""
    registry = _registry(kind, name)

    def whole(part: Part) -> Part:
        known = registry.arguments(part.kind).items() if part.kind in registry else ()
        defaults = {key: each.default for key, each in known if each.default is not each.empty}
        return Part(part.kind, {**defaults, **part.options})

    return [[whole(part) for part in memory] for memory in parse_parts(name, text)]


def same_parts(
    kind: type[Any], name: str, first: str, second: str, compared: Callable[[Part], Part] = lambda part: part
) -> bool:
    """Return whether two texts of a field describe the same parts, of which ``compared`` keeps what matters.

    Options at their defaults may be left out, and equal layers or memories may be one entry.
    """

    def folded(entries: list[Any]) -> list[Any]:
        return entries[:1] if all(entry == entries[0] for entry in entries) else entries

    def read(text: str) -> list[Any]:
        memories = parts_with_defaults(kind, name, text)
        return folded([folded([compared(part) for part in memory]) for memory in memories])

    return read(first) == read(second)


def scaled_field(kind: type[Any], name: str, value: Any, lengths: int, widths: int) -> Any:
    """Return a field of a config, of the model or of the task, with its lengths and widths divided, rounded down.

    Raises:
        UserError: a length or a width below its divisor, which would become 0.
    """

    def divided(number: int, by: int) -> int:
        if 0 < number < by:
            raise UserError(f"`{name}` must be at least {by} at this scale, but is {number}.")
        return number // by

    def own(part: Part) -> Part:
        options = dict(part.options)
        named = options_of(Role.LENGTH, registry, part.kind) if part.kind in registry else ()
        for key in (key for key in named if type(options.get(key)) is int):
            options[key] = divided(options[key], lengths)
            # What lies on both sides stays even.
            if options[key] > 1 and is_window(registry, part.kind, key):
                options[key] -= options[key] % 2
        return Part(part.kind, options)

    if type(value) is int and name in (*_WIDTHS, *_LENGTHS):
        return divided(value, widths if name in _WIDTHS else lengths)
    if isinstance(value, str) and name == "pooling_lengths":
        entries = lengths_in(value)
        return ",".join(str(divided(int(entry), lengths)) if entry.isdecimal() else entry for entry in entries)
    if not isinstance(value, str) or name not in part_fields(kind):
        return value
    registry = _registry(kind, name)
    # Without lengths it is not parsed: in a file it may refer to another field.
    has_lengths = any(options_of(Role.LENGTH, registry, each) for each in registry.names)
    return changed(name, value, own) if has_lengths else value


class FieldReader:
    """Parses the fields of a config that describe parts; None stands for the kind "none".

    Raises:
        UserError: a text that describes no parts, or an unknown kind.
    """

    def __init__(self, config: Any) -> None:
        self.config = config
        self._parsed: dict[str, Parts] = {}

    def _parts(self, name: str) -> Parts:
        if name not in self._parsed:
            text, said = getattr(self.config, name), type(self.config).__dataclass_fields__[name].metadata
            none = [NONE] if said["optional"] else []
            self._parsed[name] = parse_parts(name, text)
            for part in chain(*self._parsed[name]):
                said["registry"].require(part.kind, f"`{name}`", *none)
                if part.kind == NONE and part.options:
                    raise UserError(f"`{name}` must be {NONE} without options, but is {written(part)}.")
        return self._parsed[name]

    def one(self, name: str) -> Part:
        """Return the part that the field ``name`` describes."""
        parts = self._parts(name)
        if len(parts) > 1 or len(parts[0]) > 1:
            raise UserError(f"`{name}` must be one part, but is {shown(getattr(self.config, name))}.")
        return parts[0][0]

    def one_or_none(self, name: str) -> Part | None:
        """Return what `one` does, None where the kind is "none"."""
        part = self.one(name)
        return None if part.kind == NONE else part

    def each(self, name: str, count: int, unit: str) -> list[Part]:
        """Return a part for each of ``count`` units; a field has one entry for all of them, or one per unit."""
        return self.each_of_several(name, 1, count, unit)[0]

    def each_or_none(self, name: str, count: int, unit: str) -> list[Part | None]:
        """Return what `each` does, None where a kind is "none"."""
        return [None if part.kind == NONE else part for part in self.each(name, count, unit)]

    def each_of_several(self, name: str, several: int, count: int, unit: str) -> list[list[Part]]:
        """Return what `each` does for each of ``several``; a field has one entry for all of these, or one for each."""
        memories, text = self._parts(name), shown(getattr(self.config, name))
        if len(memories) not in (1, several):
            raise UserError(
                f"`{name}` must have one entry, or one per memory with semicolons in between, but has {len(memories)} "
                f"for {several} of `memories`: {text}."
            )
        for memory in memories:
            if len(memory) not in (1, count):
                raise UserError(
                    f"`{name}` must have one entry, or one per {unit} with | in between, but has {len(memory)} for "
                    f"{count}: {text}."
                )
        return [memory * (count // len(memory)) for memory in memories * (several // len(memories))]


def check_supported(subject: str, parts: Sequence[Part], feature: Feature, rule: str) -> None:
    """Refuse attention of a field, as the error calls it, that does not support a feature."""
    for part in parts:
        if feature not in ATTENTION[part.kind].supports:
            check_kind(subject, part, supporting(feature), rule)


def check_kind(subject: str, part: Part, possible: Sequence[str], rule: str) -> None:
    """Refuse a part that is of none of the possible kinds; the rule says what these do."""
    if part.kind not in possible:
        raise UserError(f"{subject} must be a kind {rule} ({', '.join(possible)}), but is {part.kind!r}.")

"""Divides the lengths and the widths of a model; each part declares which of its options are lengths."""

from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, changed, lengths_in
from pyramidions.models.declared import about, part_fields
from pyramidions.nn.options import Role, is_window, options_of

_WIDTHS = ("embed_dim", "ffn_embed_dim")
_LENGTHS = ("max_source_positions", "max_target_positions", "decoding_min_length", "decoding_max_length")


def scaled_field(kind: type[Any], name: str, value: Any, lengths: int, widths: int) -> Any:
    """Return a field of a config, of the model or of the task, with its lengths and widths divided.

    Args:
        kind: the class of the config, which declares the field.
        name: of the field.
        value: of the field.
        lengths, widths: the divisors; rounded down.

    Raises:
        UserError: a length or a width below its divisor, which would become 0.
    """

    def divided(number: int, by: int) -> int:
        if 0 < number < by:
            raise UserError(f"`{name}` must be at least {by} at this scale, but is {number}.")
        return number // by

    if type(value) is int and name in (*_WIDTHS, *_LENGTHS):
        return divided(value, widths if name in _WIDTHS else lengths)
    if not isinstance(value, str):
        return value
    if name == "pooling_lengths":
        entries = lengths_in(value)
        return ",".join(str(divided(int(entry), lengths)) if entry.isdecimal() else entry for entry in entries)
    if name not in part_fields(kind):
        return value
    registry = about(kind, name)["registry"]
    if not any(options_of(Role.LENGTH, registry, each) for each in registry.names):
        return value

    def own(part: Part) -> Part:
        named = options_of(Role.LENGTH, registry, part.kind) if part.kind in registry else ()
        options = dict(part.options)
        for key in (key for key in named if type(options.get(key)) is int):
            options[key] = divided(options[key], lengths)
            # What lies on both sides stays even.
            if options[key] > 1 and is_window(registry, part.kind, key):
                options[key] -= options[key] % 2
        return Part(part.kind, options)

    return changed(name, value, own)

"""Parses the strings of a flat config: kinds, their options as JSON, lists of them, and pooled lengths."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from pyramidions.arguments import shown
from pyramidions.errors import UserError
from pyramidions.models.config import LONGEST_TEXT, NONE, Config, EncoderConfig, PyramidionConfig, check_lengths
from pyramidions.models.lm_config import LanguageModelConfig
from pyramidions.models.spec import Part
from pyramidions.registry import Registry
from pyramidions.strict_json import parse_argument, parse_options

Value = TypeVar("Value")

# Far beyond any model: a damaged number is refused before memory is asked for.
_RANGES = {
    "embed_dim": (1, 2**16),
    "ffn_embed_dim": (1, 2**20),
    "num_heads": (1, 2**10),
    "encoder_layers": (1, 1000),
    "decoder_layers": (1, 1000),
    "global_tokens": (0, LONGEST_TEXT),
    "decoding_beam": (1, 2**10),
    "decoding_min_length": (0, LONGEST_TEXT),
    "decoding_max_length": (1, LONGEST_TEXT),
    "decoding_no_repeat_ngram": (0, LONGEST_TEXT),
}
_DIGITS = len(str(LONGEST_TEXT))


class FieldReader(Generic[Config]):
    """Reads kinds and their options.

    Args:
        config: has the fields.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def one(self, name: str, registry: Registry[Any]) -> Part:
        """Return the part that the fields ``name`` and ``name``_args describe."""
        kind: str = getattr(self.config, name)
        _check_kind(name, kind, registry.names)
        return Part(kind, parse_options(getattr(self.config, f"{name}_args"), f"{name}_args"))

    def choice(self, name: str, values: Mapping[str, Value]) -> Value:
        """Return what a field stands for, which has the name of one of the ``values``."""
        given: str = getattr(self.config, name)
        _check_kind(name, given, tuple(values))
        return values[given]

    def one_or_none(self, name: str, registry: Registry[Any]) -> Part | None:
        """Return the part as `one` does, or None if its kind is "none"."""
        kind: str = getattr(self.config, name)
        _check_kind(name, kind, (NONE, *registry.names))
        if kind != NONE:
            return self.one(name, registry)
        text: str = getattr(self.config, f"{name}_args")
        if parse_options(text, f"{name}_args"):
            raise UserError(f"`{name}_args` is {shown(text)}, but `{name}` is {NONE!r}.")
        return None

    def kinds(self, name: str, registry: Registry[Any], count: int, unit: str) -> list[Part]:
        """Return what `each` does, of an axis whose parts have no options."""
        return self._each(name, registry, count, unit, getattr(self.config, name), {})

    def each(self, name: str, registry: Registry[Any], count: int, unit: str) -> list[Part]:
        """Return a part for each of ``count`` units; a field has one entry for all of them, or one per unit."""
        options = parse_argument(getattr(self.config, f"{name}_args"), f"{name}_args")
        return self._each(name, registry, count, unit, getattr(self.config, name), options)

    def each_or_none(self, name: str, registry: Registry[Any], count: int, unit: str) -> list[Part | None]:
        """Return what `each` does, None where a kind is "none"; options for all units are those of the other kinds."""
        kinds, text = getattr(self.config, name), getattr(self.config, f"{name}_args")
        options = parse_argument(text, f"{name}_args")
        parts = self._each(name, registry, count, unit, kinds, options, (NONE,))
        unread = [part for part in parts if part.kind == NONE and part.options]
        if unread and (isinstance(options, list) or len(unread) == count):
            raise UserError(f"`{name}_args` is {shown(text)}, but `{name}` is {shown(kinds)}.")
        return [None if part.kind == NONE else part for part in parts]

    def each_of_several(
        self, name: str, registry: Registry[Any], several: int, count: int, unit: str
    ) -> list[list[Part]]:
        """Return what `each` does for each of ``several``; a field has one entry for all of these, or one for each."""
        kinds = getattr(self.config, name).split(";")
        options = parse_argument(getattr(self.config, f"{name}_args"), f"{name}_args")
        # Of one there is no list around the list.
        options = options if several > 1 and isinstance(options, list) else [options]
        for field, given in ((name, kinds), (f"{name}_args", options)):
            if len(given) not in (1, several):
                raise UserError(
                    f"`{field}` must have one entry, or one per memory, but has {len(given)} for {several} of "
                    f"`memories`: {shown(getattr(self.config, field))}."
                )
        entries = zip(kinds * (several // len(kinds)), options * (several // len(options)), strict=True)
        return [self._each(name, registry, count, unit, *entry) for entry in entries]

    def _each(
        self,
        name: str,
        registry: Registry[Any],
        count: int,
        unit: str,
        text: str,
        value: Any,
        further: tuple[str, ...] = (),
    ) -> list[Part]:
        kinds = [kind.strip() for kind in text.split(",")]
        for kind in kinds:
            _check_kind(name, kind, (*further, *registry.names))
        options = self._each_options(f"{name}_args", value)
        for field, given in ((name, kinds), (f"{name}_args", options)):
            if len(given) not in (1, count):
                raise UserError(
                    f"`{field}` must have one entry, or one per {unit}, but has {len(given)} for {count}: "
                    f"{shown(getattr(self.config, field))}."
                )
        if len(kinds) == 1:
            kinds *= count
        if len(options) == 1:
            options *= count
        return [Part(kind, chosen) for kind, chosen in zip(kinds, options, strict=True)]

    def _each_options(self, name: str, value: Any) -> list[dict[str, Any]]:
        options = value if isinstance(value, list) else [value]
        if not options or not all(isinstance(entry, dict) for entry in options):
            raise UserError(
                f"`{name}` must be a JSON object, or a list of them, but is {shown(getattr(self.config, name))}."
            )
        return options


def _check_kind(name: str, kind: str, names: Sequence[str]) -> None:
    if kind not in names:
        raise UserError(f"`{name}` must be one of {', '.join(names)}, but is {kind!r}.")


def check_numbers(config: EncoderConfig | LanguageModelConfig) -> None:
    """Refuse numbers that no model can have.

    Raises:
        UserError: a field out of its range.
    """
    for name in _RANGES.keys() & vars(config).keys():
        least, most = _RANGES[name]
        if not least <= getattr(config, name) <= most:
            raise UserError(f"`{name}` must be from {least} to {most:,}, but is {shown(getattr(config, name))}.")
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        if not 0 <= getattr(config, name) < 1:
            raise UserError(f"`{name}` must be at least 0 and below 1, but is {getattr(config, name)}.")
    if isinstance(config, PyramidionConfig) and not math.isfinite(config.decoding_length_penalty):
        raise UserError(f"`decoding_length_penalty` must be finite, but is {config.decoding_length_penalty}.")
    if isinstance(config, EncoderConfig) and config.max_source_positions is not None:
        check_lengths(config.max_source_positions, LONGEST_TEXT)


def parse_memories(text: str, layers: int) -> tuple[int | None, ...]:
    """Return what a decoder reads: the numbers of encoder layers (from 0), and None for the encoder's output.

    Args:
        text: the field ``memories``.
        layers: encoder layers.

    Raises:
        UserError: no number of a layer, an entry given twice, or no ``last``.
    """
    entries = [entry.strip() for entry in text.split(",")]
    numbers = [str(number) for number in range(1, layers + 1)]
    if entries.count("last") != 1 or len({*entries}) < len(entries) or not {*entries} <= {"last", *numbers}:
        raise UserError(
            f"`memories` must be `last` and numbers of encoder layers, from 1 to {layers}, each once, but is "
            f"{shown(text)}."
        )
    return tuple(None if entry == "last" else int(entry) - 1 for entry in entries)


def parse_pooling_lengths(text: str | None, layers: int) -> dict[int, int]:
    """Return the pooled length after each layer that pools, by the layer's number (from 0).

    Args:
        text: the field ``pooling_lengths``.
        layers: encoder layers.

    Raises:
        UserError: not one entry per layer, an entry that is neither a positive integer nor None, or lengths that grow.
    """
    if text is None:
        return {}
    entries = [entry.strip() for entry in text.strip().strip("[]()").split(",")]
    if len(entries) != layers:
        raise UserError(
            f"`pooling_lengths` must have one entry per encoder layer, but has {len(entries)} for {layers}: "
            f"{shown(text)}."
        )
    lengths: dict[int, int] = {}
    last: int | None = None
    for layer, entry in enumerate(entries):
        if entry.lower() in ("none", "null"):
            continue
        if not entry.isdecimal() or len(entry) > _DIGITS or not 1 <= int(entry) <= LONGEST_TEXT:
            raise UserError(
                f"`pooling_lengths` must be positive integers up to {LONGEST_TEXT:,} or None, "
                f"but layer {layer + 1} has {shown(entry)}."
            )
        length = int(entry)
        if last is not None and length > last:
            raise UserError(f"`pooling_lengths` must not grow, but layer {layer + 1} hands on {length} after {last}.")
        lengths[layer] = last = length
    return lengths

"""Reads the strings of a flat config: parts, lists of them, and pooled lengths."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.registry import Registry
from pyramidions.models.config import LONGEST_TEXT, Config, EncoderConfig, PyramidionConfig, check_lengths
from pyramidions.models.lm_config import LanguageModelConfig
from pyramidions.models.notation import parse_part, parse_parts, written
from pyramidions.models.older_fields import NONE
from pyramidions.models.spec import Part

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
# The longest text to this power is a number.
_STRONGEST_PENALTY = 40


class FieldReader(Generic[Config]):
    """Reads kinds and their options.

    Args:
        config: has the fields.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def one(self, name: str, registry: Registry[Any]) -> Part:
        """Return the part that the field ``name`` describes."""
        part = parse_part(name, getattr(self.config, name))
        _check_kind(name, part, registry.names)
        return part

    def choice(self, name: str, values: Mapping[str, Value]) -> Value:
        """Return what a field stands for, which has the name of one of the ``values``."""
        given: str = getattr(self.config, name)
        _check_kind(name, Part(given), tuple(values))
        return values[given]

    def one_or_none(self, name: str, registry: Registry[Any]) -> Part | None:
        """Return the part as `one` does, or None if its kind is "none"."""
        part = parse_part(name, getattr(self.config, name))
        _check_kind(name, part, (NONE, *registry.names))
        return None if part.kind == NONE else part

    def each(self, name: str, registry: Registry[Any], count: int, unit: str) -> list[Part]:
        """Return a part for each of ``count`` units; a field has one entry for all of them, or one per unit."""
        (parts,) = self.each_of_several(name, registry, 1, count, unit)
        return parts

    def each_or_none(self, name: str, registry: Registry[Any], count: int, unit: str) -> list[Part | None]:
        """Return what `each` does, None where a kind is "none"."""
        (parts,) = self._each(name, (NONE, *registry.names), 1, count, unit)
        return [None if part.kind == NONE else part for part in parts]

    def each_of_several(
        self, name: str, registry: Registry[Any], several: int, count: int, unit: str
    ) -> list[list[Part]]:
        """Return what `each` does for each of ``several``; a field has one entry for all of these, or one for each."""
        return self._each(name, registry.names, several, count, unit)

    def _each(self, name: str, kinds: Sequence[str], several: int, count: int, unit: str) -> list[list[Part]]:
        text: str = getattr(self.config, name)
        memories = parse_parts(name, text)
        for memory in memories:
            for part in memory:
                _check_kind(name, part, kinds)
        if len(memories) not in (1, several):
            raise UserError(
                f"`{name}` must have one entry, or one per memory with semicolons in between, but has {len(memories)} "
                f"for {several} of `memories`: {shown(text)}."
            )
        for memory in memories:
            if len(memory) not in (1, count):
                raise UserError(
                    f"`{name}` must have one entry, or one per {unit} with | in between, but has {len(memory)} for "
                    f"{count}: {shown(text)}."
                )
        return [memory * (count // len(memory)) for memory in memories * (several // len(memories))]


def _check_kind(name: str, part: Part, names: Sequence[str]) -> None:
    if part.kind not in names:
        raise UserError(f"`{name}` must be one of {', '.join(names)}, but is {part.kind!r}.")
    if part.kind == NONE and part.options:
        raise UserError(f"`{name}` must be {NONE} without options, but is {written(part)}.")


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
    if isinstance(config, PyramidionConfig) and abs(config.decoding_length_penalty) > _STRONGEST_PENALTY:
        raise UserError(
            f"`decoding_length_penalty` must be from -{_STRONGEST_PENALTY} to {_STRONGEST_PENALTY}, but is "
            f"{config.decoding_length_penalty}."
        )
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

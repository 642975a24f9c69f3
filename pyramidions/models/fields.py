"""Reads the strings of a flat config: parts, lists of them, and lists of numbers."""

import math
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE, Part, lengths_in, parse_part, parse_parts, written
from pyramidions.base.reading import LONG
from pyramidions.models.config import (
    LONGEST_TEXT,
    Config,
    EncoderConfig,
    LanguageModelConfig,
    PyramidionConfig,
    check_lengths,
)
from pyramidions.models.declared import about

Value = TypeVar("Value")

# Far beyond any model: a damaged number is refused before memory is asked for.
_RANGES = {
    "embed_dim": (1, 2**16),
    "ffn_embed_dim": (1, 2**20),
    "num_heads": (1, 2**10),
    "encoder_layers": (1, 1000),
    "decoder_layers": (1, 1000),
    "global_tokens": (0, LONGEST_TEXT),
    "global_vectors": (0, LONGEST_TEXT),
    "decoding_beam": (1, 2**10),
    "decoding_min_length": (0, LONGEST_TEXT),
    "decoding_max_length": (1, LONGEST_TEXT),
    "decoding_no_repeat_ngram": (0, LONGEST_TEXT),
}
_DIGITS = len(str(LONGEST_TEXT))
_MOST_LAYERS = 1000  # of a language model
# The longest text to this power is a number.
_STRONGEST_PENALTY = 40


class FieldReader(Generic[Config]):
    """Reads kinds and their options.

    Args:
        config: has the fields.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def one(self, name: str) -> Part:
        """Return the part that the field ``name`` describes."""
        return self._known(name, parse_part(name, getattr(self.config, name)))

    def one_or_none(self, name: str) -> Part | None:
        """Return the part as `one` does, or None if its kind is "none"."""
        part = self.one(name)
        return None if part.kind == NONE else part

    def choice(self, name: str, values: Mapping[str, Value]) -> Value:
        """Return what a field stands for, which has the name of one of the ``values``."""
        given = getattr(self.config, name)
        if given not in values:
            raise UserError(f"`{name}` must be one of {', '.join(values)}, but is {given!r}.")
        return values[given]

    def each(self, name: str, count: int, unit: str) -> list[Part]:
        """Return a part for each of ``count`` units; a field has one entry for all of them, or one per unit."""
        return self.each_of_several(name, 1, count, unit)[0]

    def each_or_none(self, name: str, count: int, unit: str) -> list[Part | None]:
        """Return what `each` does, None where a kind is "none"."""
        return [None if part.kind == NONE else part for part in self.each(name, count, unit)]

    def each_of_several(self, name: str, several: int, count: int, unit: str) -> list[list[Part]]:
        """Return what `each` does for each of ``several``; a field has one entry for all of these, or one for each."""
        text: str = getattr(self.config, name)
        memories = [[self._known(name, part) for part in memory] for memory in parse_parts(name, text)]
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

    def _known(self, name: str, part: Part) -> Part:
        said = about(type(self.config), name)
        said["registry"].require(part.kind, f"`{name}`", *([NONE] if said["optional"] else []))
        if part.kind == NONE and part.options:
            raise UserError(f"`{name}` must be {NONE} without options, but is {written(part)}.")
        return part


def check_kinds(subject: str, parts: Sequence[Part], possible: Sequence[str], rule: str) -> None:
    """Refuse parts of other kinds than the ``possible`` ones.

    Args:
        subject: the field, as the error calls it.
        parts: that it describes.
        possible: kinds.
        rule: what those do.

    Raises:
        UserError: there is one.
    """
    for part in parts:
        if part.kind not in possible:
            raise UserError(f"{subject} must be a kind {rule} ({', '.join(possible)}), but is {part.kind!r}.")


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
    if isinstance(config, PyramidionConfig) and config.decoding_long not in LONG:
        raise UserError(f"`decoding_long` must be one of {', '.join(LONG)}, but is {shown(config.decoding_long)}.")
    if isinstance(config, EncoderConfig) and config.max_source_positions is not None:
        check_lengths(config.max_source_positions, LONGEST_TEXT)


def parse_memories(text: str, layers: int) -> tuple[int | None, ...]:
    """Return the memories of a decoder: numbers of encoder layers (from 0), and None for the encoder's output.

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
    entries = lengths_in(text)
    if len(entries) != layers:
        raise UserError(
            f"`pooling_lengths` must have one entry per encoder layer, but has {len(entries)} for {layers}: "
            f"{shown(text)}."
        )
    lengths: dict[int, int] = {}
    last: int | None = None
    for layer, entry in enumerate(entries):
        if entry == "None":
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


def parse_layers(text: str) -> list[int]:
    """Return the numbers of layers that the field ``layers`` lists.

    Raises:
        UserError: an even number of entries, one that is no number, or no layers at all.
    """
    entries = [entry.strip() for entry in text.split(",")]
    numbers = [int(entry) for entry in entries if entry.isdecimal() and len(entry) <= 4]
    if len(numbers) < len(entries) or len(entries) % 2 == 0 or not 1 <= sum(numbers) <= _MOST_LAYERS:
        raise UserError(
            f"`layers` must be one number, three or five ..., such as 2,8,2, and from 1 to {_MOST_LAYERS:,} in all, "
            f"but is {shown(text)}."
        )
    return numbers

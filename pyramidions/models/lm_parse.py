"""Parses the flat config of a language model to a spec."""

from collections.abc import Sequence

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.models.fields import FieldReader, check_numbers
from pyramidions.models.lm_config import LanguageModelConfig
from pyramidions.models.lm_spec import HourglassSpec, LanguageModelSpec, ShortenedSpec
from pyramidions.models.parse import shape_of, stack_of
from pyramidions.models.spec import AttentionSpec, FeedForwardSpec, LayerSpec, Part
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.segments import SEGMENTS

_MOST = 1000


def language_model_spec_of(config: LanguageModelConfig) -> LanguageModelSpec:
    """Return the typed spec of a config.

    Raises:
        UserError: a field that breaks a rule, or fields that contradict each other.
    """
    check_numbers(config)
    reader = FieldReader(config)
    counts = parse_layers(config.layers)
    layers = iter(_layers(reader, sum(counts)))
    groups = [tuple(next(layers) for _ in range(count)) for count in counts]
    return LanguageModelSpec(
        hourglass=_hourglass(groups, _shortenings(reader, len(counts) // 2)),
        stack=stack_of(reader),
        output=reader.one("output", OUTPUT),
        **shape_of(config),
    )


def parse_layers(text: str) -> list[int]:
    """Return the numbers of layers that the field ``layers`` lists.

    Raises:
        UserError: an even number of entries, one that is no number, or no layers at all.
    """
    entries = [entry.strip() for entry in text.split(",")]
    numbers = [int(entry) for entry in entries if entry.isdecimal() and len(entry) <= 4]
    if len(numbers) < len(entries) or len(entries) % 2 == 0 or not 1 <= sum(numbers) <= _MOST:
        raise UserError(
            f"`layers` must be one number, three or five ..., such as 2,8,2, and from 1 to {_MOST:,} in all, but is "
            f"{shown(text)}."
        )
    return numbers


def _layers(reader: FieldReader[LanguageModelConfig], count: int) -> list[LayerSpec]:
    attention = reader.each("self_attention", ATTENTION, count, "layer")
    for kind in attention:
        if Feature.STEPS not in ATTENTION[kind.kind].supports:
            possible = ", ".join(supporting(Feature.STEPS))
            raise UserError(
                f"`self_attention` of a language model must be a kind that writes token by token ({possible}), but is "
                f"{kind.kind!r}."
            )
    feed_forwards = reader.each("feed_forward", FEED_FORWARD, count, "layer")
    return [
        LayerSpec((AttentionSpec(kind, Part("dense"), is_causal=True), FeedForwardSpec(feed_forward)))
        for kind, feed_forward in zip(attention, feed_forwards, strict=True)
    ]


def _shortenings(reader: FieldReader[LanguageModelConfig], depth: int) -> list[tuple[Part | None, Part]]:
    """Return what marks boundaries and what pools segments, of the outermost hourglass first."""
    kinds = reader.each_or_none("boundaries", BOUNDARIES, max(1, depth), "hourglass")
    config = reader.config
    if not depth and kinds[0] is not None:
        raise UserError(
            f"`boundaries` must be none where `layers` is one number, {shown(config.layers)}, but is "
            f"{shown(config.boundaries)}."
        )
    pooled = reader.each("segments", SEGMENTS, max(1, depth), "hourglass")
    marked = [kind for kind in kinds if kind is not None]
    for kind in marked[1:]:
        if not BOUNDARIES[kind.kind].marks_segments:
            possible = ", ".join(name for name in BOUNDARIES.names if BOUNDARIES[name].marks_segments)
            raise UserError(
                f"`boundaries` of an hourglass within another must be a kind that reads no tokens ({possible}), but is "
                f"{kind.kind!r}."
            )
    return list(zip(kinds, pooled, strict=True))[:depth]


def _hourglass(
    layers: Sequence[tuple[LayerSpec, ...]], shortenings: Sequence[tuple[Part | None, Part]]
) -> HourglassSpec:
    if not shortenings:
        return HourglassSpec(layers[0])
    first, *rest, last = layers
    (boundaries, segments), *others = shortenings
    inner = _hourglass(rest, others)
    if boundaries is not None:
        return HourglassSpec(first, ShortenedSpec(boundaries, segments, inner), last)
    # Nothing is shortened here.
    if inner.shortened is None:
        return HourglassSpec(first + inner.before + last)
    return HourglassSpec(first + inner.before, inner.shortened, inner.after + last)

"""Parses a flat config to a spec; nothing else reads its strings."""

from collections.abc import Sequence
from itertools import chain, islice

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part
from pyramidions.models.config import (
    EncoderConfig,
    ExtractorConfig,
    LanguageModelConfig,
    PyramidionConfig,
    check_numbers,
)
from pyramidions.models.fields import FieldReader, check_kind, check_supported
from pyramidions.models.rules import check_pointer, check_read, check_stages
from pyramidions.models.spec import EncoderSpec, ExtractorSpec, HourglassSpec, LayerSpec, ModelSpec, ShortenedSpec
from pyramidions.models.stages import stages_of
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.stack import STACK

_MOST_LAYERS = 1000  # of a language model


def parse_memories(text: str, layers: int) -> tuple[int | None, ...]:
    """Return the memories of a decoder: numbers of encoder layers (from 0), and None for the encoder's output."""
    entries = [entry.strip() for entry in text.split(",")]
    numbers = [str(number) for number in range(1, layers + 1)]
    if entries.count("last") != 1 or len({*entries}) < len(entries) or not {*entries} <= {"last", *numbers}:
        raise UserError(
            f"`memories` must be `last` and numbers of encoder layers, from 1 to {layers}, each once, but is "
            f"{shown(text)}."
        )
    return tuple(None if entry == "last" else int(entry) - 1 for entry in entries)


def parse_layers(text: str) -> list[int]:
    """Return the numbers of layers that the field ``layers`` lists."""
    entries = [entry.strip() for entry in text.split(",")]
    numbers = [int(entry) for entry in entries if entry.isdecimal() and len(entry) <= 4]
    if len(numbers) < len(entries) or len(entries) % 2 == 0 or not 1 <= sum(numbers) <= _MOST_LAYERS:
        raise UserError(
            f"`layers` must be one number, three or five ..., such as 2,8,2, and from 1 to {_MOST_LAYERS:,} in all, "
            f"but is {shown(text)}."
        )
    return numbers


def spec_of(config: PyramidionConfig) -> ModelSpec:
    """Return the typed spec of a config.

    Raises:
        UserError: a field that breaks a rule, or fields that contradict each other.
    """
    check_numbers(config)
    reader, layers = FieldReader(config), config.decoder_layers
    memories = parse_memories(config.memories, config.encoder_layers)
    decoder = reader.one("decoder")
    if "cross_attention" not in DECODER[decoder.kind].sublayers_with(decoder.options):
        _refuse_cross_attention(config, decoder)
    # one list per memory
    cross = reader.each_of_several("cross_attention", len(memories), layers, "decoder layer")
    check_supported("`cross_attention`", [*chain(*cross)], Feature.OTHERS, "that reads another sequence")
    own = reader.each("decoder_self_attention", layers, "decoder layer")
    check_supported("`decoder_self_attention`", own, Feature.STEPS, "that writes token by token")
    transforms = _transforms(reader, config.encoder_layers + layers)
    encoder = _encoder(reader, transforms[: config.encoder_layers], memories)
    parts = zip(own, transforms[config.encoder_layers :], zip(*cross, strict=True), strict=True)
    check_read(encoder, decoder.kind, memories, cross)
    output = reader.one("output").kind
    if OUTPUT[output].points:
        check_pointer(encoder, output, memories[0])
        if decoder.options.get("reads_streams"):
            raise UserError(f"`output` {output} needs one stream of the encoder: not `reads_streams` of the decoder.")
    return ModelSpec(encoder, decoder, tuple(LayerSpec(kind, *both, read) for kind, both, read in parts))


def extractor_spec_of(config: ExtractorConfig) -> ExtractorSpec:
    """Return the typed spec of the config of an extractor, as `spec_of` does."""
    check_numbers(config)
    reader = FieldReader(config)
    encoder = _encoder(reader, _transforms(reader, config.encoder_layers))
    asking = {"scorer": encoder.reads_query, "global_query": config.global_query}
    for field in (name for name, asks in asking.items() if asks):
        raise UserError(f"An extractor reads no queries: `{field}` must not ask for them.")
    for pooling in encoder.poolings.values():
        if not pooling.kind.has_provenance and pooling.upsampler is None:
            raise UserError(
                f"`pooling` of an extractor must tell which sentence a vector belongs to, but {pooling.pooler.kind!r} "
                "does not."
            )
    return ExtractorSpec(encoder, reader.one("selector"))


def _transforms(reader: FieldReader, count: int) -> list[tuple[Part, Part | None]]:
    """Return the feed-forward part of each layer, and the recurrence beside it."""
    recurrences = reader.each_or_none("recurrence", count, "layer")
    return list(zip(reader.each("feed_forward", count, "layer"), recurrences, strict=True))


def stack_of(reader: FieldReader) -> Part:
    """Return the stack that a config asks for."""
    stack = reader.one("stack")
    if not reader.config.checkpoint_activations:
        return stack
    if (recomputed := STACK[stack.kind].recomputed) is None:
        raise UserError(f"`checkpoint_activations` means `stack` recomputing, but `stack` is {stack.kind!r}.")
    return Part(recomputed, stack.options)


def _encoder(
    reader: FieldReader, transforms: list[tuple[Part, Part | None]], memories: tuple[int | None, ...] = (None,)
) -> EncoderSpec:
    config = reader.config
    attention = reader.each("self_attention", config.encoder_layers, "encoder layer")
    check_supported("`self_attention`", attention, Feature.ITSELF, "by which a sequence reads itself")
    has_marks = _check_marks(reader, attention)
    if config.global_vectors:
        subject = "`self_attention` with `global_vectors`"
        check_supported(subject, attention, Feature.MARKS, "that shows global tokens to all")
        for recurrence in (part for _, part in transforms if part is not None):
            raise UserError(f"`recurrence` must be 'none' with `global_vectors`, but is {recurrence.kind!r}.")
    read = sorted(layer for layer in memories if layer is not None)
    stages = stages_of(reader, [LayerSpec(kind, *both) for kind, both in zip(attention, transforms, strict=True)], read)
    check_stages(stages, has_marks)
    return EncoderSpec(stages, tuple(None if layer is None else read.index(layer) for layer in memories))


def _check_marks(reader: FieldReader, attention: list[Part]) -> bool:
    """Return whether tokens are global; refuse what nothing would read."""
    config = reader.config
    knows = any(Feature.MARKS in ATTENTION[part.kind].supports for part in attention)
    own = reader.one_or_none("global_projections")
    given = {name: getattr(config, name) for name in ("global_tokens", "global_markers", "global_query")}
    for name, value in given.items():
        if value and not knows:
            kinds = " or ".join(supporting(Feature.MARKS))
            raise UserError(f"`{name}` needs `self_attention` {kinds}, but it is {config.self_attention!r}.")
    if own is not None and not any(given.values()) and not config.global_vectors:
        raise UserError(
            f"`global_projections` is {own.kind!r}, but no token is global: give `global_tokens`, `global_markers`, "
            "`global_query` or `global_vectors`."
        )
    return any(given.values())


def _refuse_cross_attention(config: EncoderConfig, decoder: Part) -> None:
    """Refuse settings that a decoder without cross-attention ignores."""
    for name in ("memories", "cross_attention", "cross_projections"):
        value, default = getattr(config, name), getattr(PyramidionConfig, name)
        if value != default:
            raise UserError(
                f"`{name}` must be {default!r} if `decoder` is {decoder.kind!r}, which has no cross-attention, but is "
                f"{shown(value)}."
            )


def hourglass_spec_of(config: LanguageModelConfig) -> HourglassSpec:
    """Return the typed spec of the layers of a language model, as `spec_of` does."""
    check_numbers(config)
    reader, counts = FieldReader(config), parse_layers(config.layers)
    attention = reader.each("self_attention", sum(counts), "layer")
    subject = "`self_attention` of a language model"
    check_supported(subject, attention, Feature.STEPS, "that writes token by token")
    without = [kind for kind in OUTPUT.names if not OUTPUT[kind].points]
    check_kind("`output` of a language model", reader.one("output"), without, "that points to no document")
    layers = map(LayerSpec, attention, reader.each("feed_forward", sum(counts), "layer"))
    groups = [tuple(islice(layers, count)) for count in counts]
    return _hourglass(groups, _shortenings(reader, len(counts) // 2))


def _shortenings(reader: FieldReader, depth: int) -> list[tuple[Part | None, Part, Part]]:
    """Return what marks boundaries, pools segments and brings them back, of the outermost hourglass first."""
    kinds = reader.each_or_none("boundaries", max(1, depth), "hourglass")
    config = reader.config
    if not depth and kinds[0] is not None:
        raise UserError(
            f"`boundaries` must be none where `layers` is one number, {shown(config.layers)}, but is "
            f"{shown(config.boundaries)}."
        )
    pooled, back = (reader.each(name, max(1, depth), "hourglass") for name in ("segments", "upsampling"))
    possible = [name for name in BOUNDARIES.names if BOUNDARIES[name].marks_segments]
    for inner in [kind for kind in kinds if kind is not None][1:]:
        check_kind("`boundaries` of an hourglass within another", inner, possible, "that reads no tokens")
    return list(zip(kinds, pooled, back, strict=True))[:depth]


def _hourglass(
    layers: Sequence[tuple[LayerSpec, ...]], shortenings: Sequence[tuple[Part | None, Part, Part]]
) -> HourglassSpec:
    if not shortenings:
        return HourglassSpec(layers[0])
    first, *rest, last = layers
    (boundaries, segments, upsampling), *others = shortenings
    inner = _hourglass(rest, others)
    if boundaries is not None:
        return HourglassSpec(first, ShortenedSpec(boundaries, segments, inner, upsampling), last)
    # Nothing is shortened here.
    if inner.shortened is None:
        return HourglassSpec(first + inner.before + last)
    return HourglassSpec(first + inner.before, inner.shortened, inner.after + last)

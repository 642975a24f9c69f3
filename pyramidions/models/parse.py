"""Parses fairseq's flat config to a spec; nothing else reads its strings."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.models.config import (
    STARTS,
    EncoderConfig,
    ExtractorConfig,
    LanguageModelConfig,
    PyramidionConfig,
)
from pyramidions.models.fields import FieldReader, check_kinds, check_numbers, parse_layers, parse_memories
from pyramidions.models.rules import check_stages, needs_queries
from pyramidions.models.spec import (
    AttentionSpec,
    DecoderSpec,
    EmbedderSpec,
    EncoderSpec,
    ExtractorSpec,
    FeedForwardSpec,
    HourglassSpec,
    LanguageModelSpec,
    LayerSpec,
    ModelSpec,
    Part,
    ShortenedSpec,
)
from pyramidions.models.stages import stages_of
from pyramidions.nn.attention import Feature, supporting
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.stack import STACK


def spec_of(config: PyramidionConfig) -> ModelSpec:
    """Return the typed spec of a config.

    Raises:
        UserError: a field that breaks a rule, or fields that contradict each other.
    """
    check_numbers(config)
    reader = FieldReader(config)
    feed_forwards = _feed_forwards(reader, config.encoder_layers + config.decoder_layers)
    stack = stack_of(reader)
    memories = parse_memories(config.memories, config.encoder_layers)
    return ModelSpec(
        encoder=_encoder(reader, feed_forwards[: config.encoder_layers], stack, memories),
        decoder=_decoder(reader, config.decoder_layers, feed_forwards[config.encoder_layers :], stack, len(memories)),
        **shape_of(config),
    )


def extractor_spec_of(config: ExtractorConfig) -> ExtractorSpec:
    """Return the typed spec of the config of an extractor.

    Raises:
        UserError: as `spec_of`; or a pooling hands on vectors that belong to no sentence.
    """
    check_numbers(config)
    reader = FieldReader(config)
    encoder = _encoder(reader, _feed_forwards(reader, config.encoder_layers), stack_of(reader))
    if field := needs_queries(encoder):
        raise UserError(f"An extractor reads no queries: `{field}` must not ask for them.")
    for pooling in encoder.poolings.values():
        if not POOLING[pooling.pooler.kind].has_provenance and pooling.upsampler is None:
            raise UserError(
                f"`pooling` of an extractor must tell which sentence a vector belongs to, but {pooling.pooler.kind!r} "
                "does not."
            )
    return ExtractorSpec(encoder=encoder, **shape_of(config))


def shape_of(config: EncoderConfig | LanguageModelConfig) -> dict[str, Any]:
    """Return the fields of a `ShapeSpec`."""
    return {
        "embed_dim": config.embed_dim,
        "ffn_embed_dim": config.ffn_embed_dim,
        "num_heads": config.num_heads,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "normalize_before": config.normalize_before,
    }


def _feed_forwards(reader: FieldReader, count: int) -> list[FeedForwardSpec]:
    parts = reader.each("feed_forward", count, "layer")
    recurrences = reader.each_or_none("recurrence", count, "layer")
    return [FeedForwardSpec(*both) for both in zip(parts, recurrences, strict=True)]


def stack_of(reader: FieldReader) -> Part:
    """Return the stack that a config asks for."""
    stack = reader.one("stack")
    if not reader.config.checkpoint_activations:
        return stack
    if (recomputed := STACK[stack.kind].recomputed) is None:
        raise UserError(f"`checkpoint_activations` means `stack` recomputing, but `stack` is {stack.kind!r}.")
    return Part(recomputed, stack.options)


def _embedder(reader: FieldReader, positions: str) -> EmbedderSpec:
    config = reader.config
    if config.tag_dim < 0:
        raise UserError(f"`tag_dim` must be at least 0, but is {config.tag_dim}.")
    return EmbedderSpec(
        reader.one_or_none(positions),
        norm=config.layernorm_embedding,
        scale=not config.no_scale_embedding,
        tag_dim=config.tag_dim if positions == "encoder_positions" else 0,
    )


def _encoder(
    reader: FieldReader, feed_forwards: list[FeedForwardSpec], stack: Part, memories: tuple[int | None, ...] = (None,)
) -> EncoderSpec:
    attention = reader.each("self_attention", reader.config.encoder_layers, "encoder layer")
    possible = supporting(Feature.ITSELF)
    check_kinds("`self_attention`", attention, possible, "by which a sequence reads itself")
    projections = reader.one("encoder_projections")
    own, marking = _global_projections(reader, attention), supporting(Feature.MARKS)
    layers = [
        LayerSpec(
            (
                AttentionSpec(kind, projections, global_projections=own if kind.kind in marking else None),
                feed_forward,
            )
        )
        for kind, feed_forward in zip(attention, feed_forwards, strict=True)
    ]
    read = sorted(layer for layer in memories if layer is not None)
    stages = stages_of(reader, layers, read)
    config = reader.config
    marked = (config.global_tokens, config.global_markers, config.global_query)
    check_stages(stages, any(marked))
    order = tuple(None if layer is None else read.index(layer) for layer in memories)
    return EncoderSpec(_embedder(reader, "encoder_positions"), stages, stack, order, *marked)


def _global_projections(reader: FieldReader, attention: list[Part]) -> Part | None:
    """Return the projections of what global tokens see; refuse what nothing would read."""
    config = reader.config
    own = reader.one_or_none("global_projections")
    given = {name: getattr(config, name) for name in ("global_tokens", "global_markers", "global_query")}
    kinds = supporting(Feature.MARKS)
    for name, value in given.items():
        if value and not any(part.kind in kinds for part in attention):
            raise UserError(
                f"`{name}` needs `self_attention` {' or '.join(kinds)}, but it is {config.self_attention!r}."
            )
    if own is not None and not any(given.values()):
        raise UserError(
            f"`global_projections` is {own.kind!r}, but no token is global: give `global_tokens`, `global_markers` or "
            "`global_query`."
        )
    return own


def _decoder(
    reader: FieldReader, count: int, feed_forwards: list[FeedForwardSpec], stack: Part, memories: int
) -> DecoderSpec:
    decoder = reader.one("decoder")
    names = DECODER[decoder.kind].sublayers_with(decoder.options)
    if "cross_attention" not in names:
        _refuse_cross_attention(reader.config, decoder)
    # one list per memory
    kinds = reader.each_of_several("cross_attention", memories, count, "decoder layer")
    check_kinds("`cross_attention`", [*chain(*kinds)], supporting(Feature.OTHERS), "that reads another sequence")
    own = reader.each("decoder_self_attention", count, "decoder layer")
    check_kinds("`decoder_self_attention`", own, supporting(Feature.STEPS), "that writes token by token")
    back = reader.one("decoder_projections")
    cross = reader.one("cross_projections")

    def layer(kind: Part, kinds: tuple[Part, ...], feed_forward: FeedForwardSpec) -> LayerSpec:
        each = [AttentionSpec(kind, back, is_causal=True, place=place) for place in range(len(names))]
        parts: dict[str, tuple[AttentionSpec | FeedForwardSpec, ...]] = {
            **{one.name: (one,) for one in each},
            "cross_attention": tuple(AttentionSpec(kind, cross, reads=number) for number, kind in enumerate(kinds)),
            "feed_forward": (feed_forward,),
        }
        return LayerSpec(tuple(chain(*(parts[name] for name in names))))

    return DecoderSpec(
        decoder,
        _embedder(reader, "decoder_positions"),
        tuple(layer(*parts) for parts in zip(own, zip(*kinds, strict=True), feed_forwards, strict=True)),
        stack,
        reader.one("output"),
        reader.choice("decoder_start", STARTS),
    )


def _refuse_cross_attention(config: EncoderConfig, decoder: Part) -> None:
    """Refuse what a decoder without cross-attention would not read.

    Raises:
        UserError: there is something.
    """
    for name in ("memories", "cross_attention", "cross_projections"):
        value, default = getattr(config, name), getattr(PyramidionConfig, name)
        if value != default:
            raise UserError(
                f"`{name}` must be {default!r} if `decoder` is {decoder.kind!r}, which has no cross-attention, but is "
                f"{shown(value)}."
            )


def language_model_spec_of(config: LanguageModelConfig) -> LanguageModelSpec:
    """Return the typed spec of a config.

    Raises:
        UserError: a field that breaks a rule, or fields that contradict each other.
    """
    check_numbers(config)
    reader = FieldReader(config)
    counts = parse_layers(config.layers)
    layers = iter(_causal_layers(reader, sum(counts)))
    groups = [tuple(next(layers) for _ in range(count)) for count in counts]
    return LanguageModelSpec(
        hourglass=_hourglass(groups, _shortenings(reader, len(counts) // 2)),
        stack=stack_of(reader),
        output=reader.one("output"),
        **shape_of(config),
    )


def _causal_layers(reader: FieldReader[LanguageModelConfig], count: int) -> list[LayerSpec]:
    attention = reader.each("self_attention", count, "layer")
    possible = supporting(Feature.STEPS)
    check_kinds("`self_attention` of a language model", attention, possible, "that writes token by token")
    projections = Part(PyramidionConfig.decoder_projections)
    feed_forwards = reader.each("feed_forward", count, "layer")
    return [
        LayerSpec((AttentionSpec(kind, projections, is_causal=True), FeedForwardSpec(feed_forward)))
        for kind, feed_forward in zip(attention, feed_forwards, strict=True)
    ]


def _shortenings(reader: FieldReader[LanguageModelConfig], depth: int) -> list[tuple[Part | None, Part]]:
    """Return what marks boundaries and what pools segments, of the outermost hourglass first."""
    kinds = reader.each_or_none("boundaries", max(1, depth), "hourglass")
    config = reader.config
    if not depth and kinds[0] is not None:
        raise UserError(
            f"`boundaries` must be none where `layers` is one number, {shown(config.layers)}, but is "
            f"{shown(config.boundaries)}."
        )
    pooled = reader.each("segments", max(1, depth), "hourglass")
    inner = [kind for kind in kinds if kind is not None][1:]
    possible = [name for name in BOUNDARIES.names if BOUNDARIES[name].marks_segments]
    check_kinds("`boundaries` of an hourglass within another", inner, possible, "that reads no tokens")
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

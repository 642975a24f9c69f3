"""Parses fairseq's flat config to a spec; nothing else reads its strings."""

from itertools import chain
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.models.config import (
    STARTS,
    EncoderConfig,
    ExtractorConfig,
    PyramidionConfig,
)
from pyramidions.models.fields import FieldReader, check_numbers, parse_memories
from pyramidions.models.global_tokens import check_poolings, global_projections, reads_marks
from pyramidions.models.lm_config import LanguageModelConfig
from pyramidions.models.markers import check_units
from pyramidions.models.queries import refuse_queries
from pyramidions.models.spec import (
    AttentionSpec,
    DecoderSpec,
    EmbedderSpec,
    EncoderSpec,
    ExtractorSpec,
    FeedForwardSpec,
    LayerSpec,
    ModelSpec,
    Part,
)
from pyramidions.models.stages import stages_of
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.recurrence import RECURRENCE
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
    refuse_queries(encoder)
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
    parts = reader.each("feed_forward", FEED_FORWARD, count, "layer")
    recurrences = reader.each_or_none("recurrence", RECURRENCE, count, "layer")
    return [FeedForwardSpec(*both) for both in zip(parts, recurrences, strict=True)]


def stack_of(reader: FieldReader) -> Part:
    """Return the stack that a config asks for."""
    stack = reader.one("stack", STACK)
    if not reader.config.checkpoint_activations:
        return stack
    if stack.kind not in ("plain", "recomputing"):
        raise UserError(f"`checkpoint_activations` means `stack` recomputing, but `stack` is {stack.kind!r}.")
    return Part("recomputing", stack.options)


def _embedder(reader: FieldReader, positions: str) -> EmbedderSpec:
    config = reader.config
    if config.tag_dim < 0:
        raise UserError(f"`tag_dim` must be at least 0, but is {config.tag_dim}.")
    return EmbedderSpec(
        reader.one_or_none(positions, POSITIONS),
        norm=config.layernorm_embedding,
        scale=not config.no_scale_embedding,
        tag_dim=config.tag_dim if positions == "encoder_positions" else 0,
    )


def _encoder(
    reader: FieldReader, feed_forwards: list[FeedForwardSpec], stack: Part, memories: tuple[int | None, ...] = (None,)
) -> EncoderSpec:
    attention = reader.each("self_attention", ATTENTION, reader.config.encoder_layers, "encoder layer")
    for kind in attention:
        if Feature.ITSELF not in ATTENTION[kind.kind].supports:
            possible = ", ".join(supporting(Feature.ITSELF))
            raise UserError(
                f"`self_attention` must be a kind by which a sequence reads itself ({possible}), but is {kind.kind!r}."
            )
    projections = reader.one("encoder_projections", PROJECTIONS)
    own = global_projections(reader, attention)
    layers = [
        LayerSpec(
            (
                AttentionSpec(kind, projections, global_projections=own if reads_marks(kind) else None),
                feed_forward,
            )
        )
        for kind, feed_forward in zip(attention, feed_forwards, strict=True)
    ]
    read = sorted(layer for layer in memories if layer is not None)
    stages = stages_of(reader, layers, read)
    check_units(stages)
    config = reader.config
    marked = (config.global_tokens, config.global_markers, config.global_query)
    if any(marked):
        check_poolings(stages)
    order = tuple(None if layer is None else read.index(layer) for layer in memories)
    return EncoderSpec(_embedder(reader, "encoder_positions"), stages, stack, order, *marked)


def _decoder(
    reader: FieldReader, count: int, feed_forwards: list[FeedForwardSpec], stack: Part, memories: int
) -> DecoderSpec:
    decoder = reader.one("decoder", DECODER)
    names = DECODER[decoder.kind].sublayers_with(decoder.options)
    if "cross_attention" not in names:
        _refuse_cross_attention(reader.config, decoder)
    # one list per memory
    kinds = reader.each_of_several("cross_attention", ATTENTION, memories, count, "decoder layer")
    for kind in chain(*kinds):
        if Feature.OTHERS not in ATTENTION[kind.kind].supports:
            possible = ", ".join(supporting(Feature.OTHERS))
            raise UserError(
                f"`cross_attention` must be a kind that reads another sequence ({possible}), but is {kind.kind!r}."
            )
    own = reader.each("decoder_self_attention", ATTENTION, count, "decoder layer")
    for kind in own:
        if Feature.STEPS not in ATTENTION[kind.kind].supports:
            possible = ", ".join(supporting(Feature.STEPS))
            raise UserError(
                f"`decoder_self_attention` must be a kind that writes token by token ({possible}), but is "
                f"{kind.kind!r}."
            )
    back = reader.one("decoder_projections", PROJECTIONS)
    cross = reader.one("cross_projections", PROJECTIONS)

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
        reader.one("output", OUTPUT),
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

"""Parses fairseq's flat config to a spec; nothing else reads its strings."""

from typing import Any

from pyramidions.errors import UserError
from pyramidions.models.config import (
    MAX_SOURCE_POSITIONS,
    NONE,
    STARTS,
    EncoderConfig,
    ExtractorConfig,
    PyramidionConfig,
)
from pyramidions.models.fields import FieldReader, check_numbers, parse_options, parse_pooling_lengths
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
    PoolingSpec,
    StageSpec,
)
from pyramidions.nn.attention import ATTENTION, MarkedAttention
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.stack import STACK
from pyramidions.nn.upsampling import UPSAMPLING


def spec_of(config: PyramidionConfig) -> ModelSpec:
    """Return the typed spec of a config.

    Raises:
        UserError: a field that breaks a rule, or fields that contradict each other.
    """
    check_numbers(config)
    reader = FieldReader(config)
    feed_forwards = _feed_forwards(reader, config.encoder_layers + config.decoder_layers)
    stack = _stack(reader)
    return ModelSpec(
        encoder=_encoder(reader, feed_forwards[: config.encoder_layers], stack),
        decoder=_decoder(reader, config.decoder_layers, feed_forwards[config.encoder_layers :], stack),
        **_shape(config),
    )


def extractor_spec_of(config: ExtractorConfig) -> ExtractorSpec:
    """Return the typed spec of the config of an extractor.

    Raises:
        UserError: as `spec_of`; or a pooling hands on vectors that belong to no sentence.
    """
    check_numbers(config)
    reader = FieldReader(config)
    encoder = _encoder(reader, _feed_forwards(reader, config.encoder_layers), _stack(reader))
    for pooling in encoder.poolings.values():
        if not POOLING[pooling.pooler.kind].has_provenance and pooling.upsampler is None:
            raise UserError(
                f"`pooling` of an extractor must tell which sentence a vector belongs to, but {pooling.pooler.kind!r} "
                "does not."
            )
    return ExtractorSpec(encoder=encoder, **_shape(config))


def _shape(config: EncoderConfig) -> dict[str, Any]:
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
    return [FeedForwardSpec(part) for part in reader.each("feed_forward", FEED_FORWARD, count, "layer")]


def _stack(reader: FieldReader) -> Part:
    stack = reader.one("stack", STACK)
    if not reader.config.checkpoint_activations:
        return stack
    if stack.kind not in ("plain", "recomputing"):
        raise UserError(f"`checkpoint_activations` means `stack` recomputing, but `stack` is {stack.kind!r}.")
    return Part("recomputing", stack.options)


def _embedder(reader: FieldReader, positions: str) -> EmbedderSpec:
    config = reader.config
    return EmbedderSpec(
        reader.one_or_none(positions, POSITIONS), norm=config.layernorm_embedding, scale=not config.no_scale_embedding
    )


def _encoder(reader: FieldReader, feed_forwards: list[FeedForwardSpec], stack: Part) -> EncoderSpec:
    attention = reader.each("self_attention", ATTENTION, reader.config.encoder_layers, "encoder layer")
    projections = reader.one("encoder_projections", PROJECTIONS)
    own = _global_projections(reader, attention)
    layers = [
        LayerSpec(
            (
                AttentionSpec(kind, projections, global_projections=own if _reads_marks(kind) else None),
                feed_forward,
            )
        )
        for kind, feed_forward in zip(attention, feed_forwards, strict=True)
    ]
    stages = _stages(reader, layers)
    config = reader.config
    if config.global_tokens or config.global_markers:
        _check_global(stages)
    return EncoderSpec(
        _embedder(reader, "encoder_positions"), stages, stack, config.global_tokens, config.global_markers
    )


def _reads_marks(attention: Part) -> bool:
    return issubclass(ATTENTION[attention.kind], MarkedAttention)


def _global_projections(reader: FieldReader, attention: list[Part]) -> Part | None:
    """Return the projections of what global tokens see; refuse what nothing would read."""
    config = reader.config
    own = reader.one_or_none("global_projections", PROJECTIONS)
    given = {name: getattr(config, name) for name in ("global_tokens", "global_markers")}
    for name, value in given.items():
        if value and not any(map(_reads_marks, attention)):
            kinds = " or ".join(name for name in ATTENTION.names if _reads_marks(Part(name)))
            raise UserError(f"`{name}` needs `self_attention` {kinds}, but it is {config.self_attention!r}.")
    if own is not None and not any(given.values()):
        raise UserError(
            f"`global_projections` is {own.kind!r}, but no token is global: give `global_tokens` or `global_markers`."
        )
    return own


def _check_global(stages: tuple[StageSpec, ...]) -> None:
    """Refuse poolings after which nobody knows which vectors are global, if a later layer asks."""
    lost = None
    for stage in (inner for outer in stages for inner in outer.all_stages()):
        if lost is not None and any(_reads_marks(layer.self_attention.attention) for layer in stage.layers):
            raise UserError(
                f"Global tokens need poolings that tell what their vectors are made of, but {lost!r} does not."
            )
        if stage.pooling is not None and not POOLING[stage.pooling.pooler.kind].has_provenance:
            lost = stage.pooling.pooler.kind


def _decoder(reader: FieldReader, count: int, feed_forwards: list[FeedForwardSpec], stack: Part) -> DecoderSpec:
    decoder = reader.one("decoder", DECODER)
    kinds = reader.each("cross_attention", ATTENTION, count, "decoder layer")
    for kind in kinds:
        if not ATTENTION[kind.kind].crosses:
            raise UserError(f"`cross_attention` must be a kind that reads another sequence, but is {kind.kind!r}.")
    back = AttentionSpec(Part("full"), reader.one("decoder_projections", PROJECTIONS), is_causal=True)
    cross = reader.one("cross_projections", PROJECTIONS)

    def layer(kind: Part, feed_forward: FeedForwardSpec) -> LayerSpec:
        parts: dict[str, AttentionSpec | FeedForwardSpec] = {
            "self_attention": back,
            "cross_attention": AttentionSpec(kind, cross, reads="memory"),
            "feed_forward": feed_forward,
        }
        return LayerSpec(tuple(parts[name] for name in DECODER[decoder.kind].sublayers))

    return DecoderSpec(
        decoder,
        _embedder(reader, "decoder_positions"),
        tuple(layer(*parts) for parts in zip(kinds, feed_forwards, strict=True)),
        stack,
        reader.one("output", OUTPUT),
        reader.choice("decoder_start", STARTS),
    )


def _stages(reader: FieldReader, layers: list[LayerSpec]) -> tuple[StageSpec, ...]:
    """Cut ``layers`` at poolings; a stage with upsampling holds all later stages."""
    config = reader.config
    lengths = parse_pooling_lengths(config.pooling_lengths, len(layers))
    if not lengths:
        _refuse_unused(reader)
        return (StageSpec(tuple(layers), config.max_source_positions or MAX_SOURCE_POSITIONS),)
    poolers = dict(zip(lengths, reader.each("pooling", POOLING, len(lengths), "pooling"), strict=True))
    _check_marks([pooler.kind for pooler in poolers.values()])
    scorers = dict(zip(lengths, _scorers(reader, list(poolers.values())), strict=True))
    upsampler = _upsampler(reader, list(poolers.values()))

    def stages(start: int, longest: int) -> tuple[StageSpec, ...]:
        last = next((layer for layer in lengths if layer >= start), None)
        if last is None:
            return (StageSpec(tuple(layers[start:]), longest),) if start < len(layers) else ()
        after, owned = last + 1, None
        if POOLING.takes(poolers[last].kind, "layer"):
            _check_funnel(config, lengths, layers[after:], poolers[last])
            owned = layers[after]
            after += 1
        window, length = -(-longest // lengths[last]), min(longest, lengths[last])
        scorer = scorers[last]
        if scorer is not None:
            _check_scorer(scorer, layers[last])
        pooling = PoolingSpec(poolers[last], lengths[last], window, scorer, owned, upsampler)
        own, rest = tuple(layers[start : last + 1]), stages(after, length)
        if upsampler is None:
            return (StageSpec(own, longest, pooling), *rest)
        if not rest and owned is None:
            raise UserError(
                f"`upsampling` {upsampler.kind!r} needs a layer after the last pooling, but `pooling_lengths` is "
                f"{config.pooling_lengths!r}."
            )
        return (StageSpec(own, longest, pooling, rest),)

    return stages(0, config.max_source_positions or MAX_SOURCE_POSITIONS)


def _check_marks(kinds: list[str]) -> None:
    """Refuse poolings after which nobody knows where units of the text start, if a later one asks."""
    asking = max((number for number, kind in enumerate(kinds) if POOLING[kind].reads_units), default=0)
    for kind in kinds[:asking]:
        if not POOLING[kind].has_provenance:
            raise UserError(
                f"`pooling` {kinds[asking]!r} must follow poolings that tell what their vectors are made of, but "
                f"follows {kind!r}."
            )


def _scorers(reader: FieldReader, poolers: list[Part]) -> list[Part | None]:
    """Return the scorer of each pooling, None if its kind takes none."""
    config = reader.config
    asking = [POOLING.takes(pooler.kind, "scorer") for pooler in poolers]
    if not any(asking):
        for name in ("scorer", "scorer_args"):
            if getattr(config, name) != getattr(EncoderConfig, name):
                raise UserError(
                    f"`{name}` is {getattr(config, name)!r}, but `pooling` {config.pooling!r} takes no scorer."
                )
    scorers = reader.each("scorer", SCORER, len(poolers), "pooling")
    for pooler, scorer, asks in zip(poolers, scorers, asking, strict=True):
        # One scorer for all is that of the poolings which take one.
        if not asks and scorer not in (scorers[asking.index(True)] if any(asking) else scorer, Part("linear")):
            raise UserError(
                f"`scorer` is {config.scorer!r} with {config.scorer_args}, but `pooling` {pooler.kind!r} takes no "
                "scorer: give it linear, without options."
            )
    return [scorer if asks else None for scorer, asks in zip(scorers, asking, strict=True)]


def _check_scorer(scorer: Part, layer: LayerSpec) -> None:
    attention = layer.self_attention
    if SCORER[scorer.kind].reads_attention and not ATTENTION[attention.attention.kind].tells("received"):
        raise UserError(
            f"`scorer` {scorer.kind!r} needs attention that tells what each position received, "
            f"but `self_attention` is {attention.attention.kind!r}."
        )


def _upsampler(reader: FieldReader, poolers: list[Part]) -> Part | None:
    config = reader.config
    if config.upsampling is None:
        kinds = {POOLING[pooler.kind].upsampling for pooler in poolers}
        if len(kinds) > 1:
            raise UserError(
                f"`upsampling` must be given, because the kinds of `pooling` {config.pooling!r} differ in it."
            )
        (kind,) = kinds
        options = parse_options(config.upsampling_args, "upsampling_args")
        if kind is None and options:
            raise UserError(f"`upsampling_args` is {config.upsampling_args!r}, but nothing is upsampled.")
        return None if kind is None else Part(kind, options)
    upsampler = reader.one_or_none("upsampling", UPSAMPLING)
    for pooler in poolers:
        if upsampler is not None and UPSAMPLING.takes(upsampler.kind, "window") > POOLING.takes(pooler.kind, "window"):
            raise UserError(
                f"`upsampling` {upsampler.kind!r} needs pooling over windows, but `pooling` is {pooler.kind!r}."
            )
    return upsampler


def _check_funnel(config: EncoderConfig, lengths: dict[int, int], after: list[LayerSpec], pooler: Part) -> None:
    if len(lengths) != 1 or not after:
        raise UserError(
            f"`pooling_lengths` of {pooler.kind} pooling must name one length, after a layer that another one follows, "
            f"but is {config.pooling_lengths!r}."
        )
    attention = after[0].self_attention
    if not ATTENTION[attention.attention.kind].tells("across"):
        names = " or ".join(name for name in ATTENTION.names if ATTENTION[name].tells("across"))
        raise UserError(
            f"{pooler.kind.capitalize()} pooling needs `self_attention` {names}, but it is "
            f"{attention.attention.kind!r}."
        )


def _refuse_unused(reader: FieldReader) -> None:
    """Refuse options of pooling if nothing is pooled; names of kinds are checked all the same."""
    config = reader.config
    reader.each("pooling", POOLING, 1, "pooling")
    reader.each("scorer", SCORER, 1, "pooling")
    for name in ("pooling_args", "scorer_args", "upsampling", "upsampling_args"):
        if getattr(config, name) not in (getattr(EncoderConfig, name), NONE):
            raise UserError(
                f"`{name}` is {getattr(config, name)!r}, but nothing is pooled: "
                f"`pooling_lengths` is {config.pooling_lengths}."
            )

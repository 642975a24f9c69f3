"""From a config to a model: the one place that reads both configs and registries."""

import math
from typing import Any

from torch import nn

from pyramidions.errors import UserError
from pyramidions.models.config import (
    LONGEST_TEXT,
    MAX_SOURCE_POSITIONS,
    POSITIONS,
    PyramidionConfig,
    check_lengths,
    config_of,
    parse_options,
    parse_pooling_lengths,
    shown,
)
from pyramidions.models.presets import PRESETS
from pyramidions.nn import Decoder, Encoder, Transformer
from pyramidions.nn.attention import ATTENTION, CoreAttention, FullAttention, MultiheadAttention
from pyramidions.nn.decoder import DecoderLayer
from pyramidions.nn.encoder_layer import EncoderLayer
from pyramidions.nn.feed_forward import FEED_FORWARD, FeedForward
from pyramidions.nn.pooling import POOLING, FunnelUpsampler, Pooler
from pyramidions.nn.position import SinusoidalPositions
from pyramidions.nn.registry import Registry
from pyramidions.nn.residual import RESIDUAL, RecomputingStack, ResidualConnection, ResidualStack
from pyramidions.nn.scorer import SCORER


def preset(name: str, **overrides: Any) -> PyramidionConfig:
    """Return the config of an architecture by name, e.g. ``preset("deep_pyramidion", dropout=0.0)``.

    Raises:
        UserError: an unknown architecture or field.
    """
    if name not in PRESETS:
        raise UserError(f"The architecture must be one of {', '.join(PRESETS)}, but is {name!r}.")
    return config_of({**PRESETS[name], **overrides})


def build(config: PyramidionConfig, vocab_size: int, padding_idx: int = 1) -> Transformer:
    """Build a model with freshly initialised weights.

    Args:
        config: its shape.
        vocab_size: V, specials included.
        padding_idx: the token that is padding.

    Raises:
        UserError: a field, or an option of a part, that breaks a rule.
    """
    _check(config)
    embedding = nn.Embedding(vocab_size, config.embed_dim, padding_idx)
    nn.init.normal_(embedding.weight, std=config.embed_dim**-0.5)
    nn.init.zeros_(embedding.weight[padding_idx])
    try:
        return Transformer(_encoder(config, embedding), _decoder(config, embedding), padding_idx)
    except UserError:
        raise
    except ValueError as error:
        # Parts know their rules, but not who broke one: here it is always the config.
        raise UserError(str(error)) from error


_KINDS: dict[str, Registry[Any]] = {
    "self_attention": ATTENTION,
    "cross_attention": ATTENTION,
    "pooling": POOLING,
    "scorer": SCORER,
    "feed_forward": FEED_FORWARD,
    "residual": RESIDUAL,
}


# Far beyond any model: a damaged number is refused before memory is asked for.
_RANGES = {
    "embed_dim": (1, 2**16),
    "ffn_embed_dim": (1, 2**20),
    "num_heads": (1, 2**10),
    "encoder_layers": (1, 1000),
    "decoder_layers": (1, 1000),
    "decoding_beam": (1, 2**10),
    "decoding_min_length": (0, LONGEST_TEXT),
    "decoding_max_length": (1, LONGEST_TEXT),
}


def _check(config: PyramidionConfig) -> None:
    for name, registry in _KINDS.items():
        if getattr(config, name) not in registry.names:
            names = ", ".join(registry.names)
            raise UserError(f"`{name}` must be one of {names}, but is {getattr(config, name)!r}.")
    for name, (least, most) in _RANGES.items():
        if not least <= getattr(config, name) <= most:
            raise UserError(f"`{name}` must be from {least} to {most:,}, but is {shown(getattr(config, name))}.")
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        if not 0 <= getattr(config, name) < 1:
            raise UserError(f"`{name}` must be at least 0 and below 1, but is {getattr(config, name)}.")
    if not math.isfinite(config.decoding_length_penalty):
        raise UserError(f"`decoding_length_penalty` must be finite, but is {config.decoding_length_penalty}.")
    if config.max_source_positions is not None:
        check_lengths(config.max_source_positions, LONGEST_TEXT)
    if not parse_pooling_lengths(config.pooling_lengths, config.encoder_layers):
        for name in ("pooling_args", "scorer_args"):
            if parse_options(getattr(config, name), name):
                raise UserError(
                    f"`{name}` is {getattr(config, name)!r}, but nothing is pooled: "
                    f"`pooling_lengths` is {config.pooling_lengths}."
                )
    elif not POOLING.takes(config.pooling, "scorer"):
        for name in ("scorer", "scorer_args"):
            if getattr(config, name) != getattr(PyramidionConfig, name):
                raise UserError(
                    f"`{name}` is {getattr(config, name)!r}, but `pooling` {config.pooling!r} asks no scorer."
                )
        if POOLING.takes(config.pooling, "layer"):
            _check_funnel(config)
    elif SCORER[config.scorer].reads_attention and not ATTENTION[config.self_attention].tells_received:
        raise UserError(
            f"`scorer` {config.scorer!r} needs attention that tells what each position received, "
            f"but `self_attention` is {config.self_attention!r}."
        )


def _check_funnel(config: PyramidionConfig) -> None:
    lengths = parse_pooling_lengths(config.pooling_lengths, config.encoder_layers)
    if len(lengths) != 1 or config.encoder_layers - 1 in lengths:
        raise UserError(
            "`pooling_lengths` of funnel pooling must name one length, after a layer that another one follows, "
            f"but is {config.pooling_lengths!r}."
        )
    if config.self_attention not in ("full", "blockwise"):
        raise UserError(
            f"Funnel pooling needs `self_attention` full or blockwise, but it is {config.self_attention!r}."
        )


def _encoder(config: PyramidionConfig, embedding: nn.Embedding) -> Encoder:
    lengths = parse_pooling_lengths(config.pooling_lengths, config.encoder_layers)
    # A pooler may own the layer that follows it.
    owned = len(lengths) if POOLING.takes(config.pooling, "layer") else 0
    attention = [_attention(config, "self_attention") for _ in range(config.encoder_layers - owned)]
    return Encoder(
        embedding,
        _positions(config, "encoder_positions"),
        [_encoder_layer(config, kind) for kind in attention],
        _poolers(config, lengths),
        _stack(config),
        FunnelUpsampler(_windows(config, lengths)[max(lengths)]) if owned else None,
        nn.LayerNorm(config.embed_dim) if config.normalize_before else None,
        config.dropout,
        attention[0].confined_to,
    )


def _encoder_layer(config: PyramidionConfig, attention: CoreAttention) -> EncoderLayer:
    return EncoderLayer(
        MultiheadAttention(config.embed_dim, config.num_heads, attention),
        _feed_forward(config),
        _residual(config),
        _residual(config),
    )


def _decoder(config: PyramidionConfig, embedding: nn.Embedding) -> Decoder:
    def among_targets() -> MultiheadAttention:
        return MultiheadAttention(config.embed_dim, config.num_heads, FullAttention(config.attention_dropout))

    def to_memory() -> MultiheadAttention:
        return MultiheadAttention(config.embed_dim, config.num_heads, _attention(config, "cross_attention"))

    layers = [
        DecoderLayer(
            among_targets(),
            to_memory(),
            _feed_forward(config),
            _residual(config),
            _residual(config),
            _residual(config),
        )
        for _ in range(config.decoder_layers)
    ]
    return Decoder(
        embedding,
        _positions(config, "decoder_positions"),
        layers,
        _stack(config),
        nn.LayerNorm(config.embed_dim) if config.normalize_before else None,
        config.dropout,
    )


def _attention(config: PyramidionConfig, name: str) -> CoreAttention:
    kind: str = getattr(config, name)
    if name == "cross_attention" and not ATTENTION[kind].crosses:
        raise UserError(f"`cross_attention` must be a kind that reads another sequence, but is {kind!r}.")
    options = parse_options(getattr(config, f"{name}_args"), f"{name}_args")
    return ATTENTION.build(kind, options, dropout=config.attention_dropout)


def _poolers(config: PyramidionConfig, lengths: dict[int, int]) -> dict[int, Pooler]:
    pooling_args = parse_options(config.pooling_args, "pooling_args")
    scorer_args = parse_options(config.scorer_args, "scorer_args")
    windows = _windows(config, lengths)
    poolers = {}
    for layer, k in lengths.items():
        given: dict[str, Any] = {"k": k, "window": windows[layer]}
        if POOLING.takes(config.pooling, "scorer"):
            given["scorer"] = SCORER.build(
                config.scorer, scorer_args, embed_dim=config.embed_dim, stride=windows[layer]
            )
        if POOLING.takes(config.pooling, "layer"):
            attention = _attention(config, "self_attention")
            given["confined_to"] = attention.confined_to
            # Within a block, or where there are none, pooled queries read another sequence than themselves.
            given["layer"] = _encoder_layer(config, FullAttention(config.attention_dropout))
        poolers[layer] = POOLING.build(config.pooling, pooling_args, **given)
    return poolers


def _windows(config: PyramidionConfig, lengths: dict[int, int]) -> dict[int, int]:
    """Return how many positions one pooled vector stands for, where a kind fixes that, by layer."""
    windows = {}
    received = config.max_source_positions or MAX_SOURCE_POSITIONS
    for layer, k in lengths.items():
        windows[layer] = -(-received // k)
        received = min(received, k)
    return windows


def _feed_forward(config: PyramidionConfig) -> FeedForward:
    return FEED_FORWARD.build(
        config.feed_forward,
        parse_options(config.feed_forward_args, "feed_forward_args"),
        embed_dim=config.embed_dim,
        ffn_embed_dim=config.ffn_embed_dim,
        activation_dropout=config.activation_dropout,
    )


def _stack(config: PyramidionConfig) -> ResidualStack:
    stack = RESIDUAL.build(config.residual, {})
    return RecomputingStack(stack) if config.checkpoint_activations else stack


def _residual(config: PyramidionConfig) -> ResidualConnection:
    return ResidualConnection(config.embed_dim, config.dropout, config.normalize_before)


def _positions(config: PyramidionConfig, name: str) -> SinusoidalPositions | None:
    kind: str = getattr(config, name)
    if kind not in POSITIONS:
        raise UserError(f"`{name}` must be one of {', '.join(POSITIONS)}, but is {kind!r}.")
    return SinusoidalPositions(config.embed_dim) if kind == "sinusoidal" else None

"""Small instances of configs, which keep the proportions, and what they cost while they compute."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import signature
from json import dumps, loads
from typing import Any, NamedTuple

from pyramidions.measure.cost import Cost, Lengths, cost_of, cost_of_run, model_of
from pyramidions.models import PyramidionConfig
from pyramidions.models.config import MAX_SOURCE_POSITIONS
from pyramidions.models.parse import spec_of
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.pooling import POOLING

_DIVISOR = 16  # of all lengths, as far as they are multiples of it
_HEAD_DIM = 4
_VOCABULARY = 61
_ALMOST_ALL = 1 - 1e-6


class Comparison(NamedTuple):
    """What a small instance costs.

    Attributes:
        counted: without computing.
        measured: while it computes.
    """

    counted: Cost
    measured: Cost

    def agrees(self) -> bool:
        """Return whether all figures are equal."""
        return self.counted == self.measured

    def as_json(self) -> dict[str, Any]:
        """Return both as plain values."""
        return {"counted": self.counted.as_json(), "measured": self.measured.as_json(), "agrees": self.agrees()}


def compare(config: PyramidionConfig, lengths: Lengths) -> Comparison:
    """Count what a model costs without computing, then while it computes on random tokens on the CPU.

    Args:
        config: the model's shape, small.
        lengths: of the batch, short.

    Raises:
        UserError: as `cost_of`.
    """
    return Comparison(cost_of(config, lengths), cost_of_run(model_of(config, lengths), lengths))


def shrink(config: PyramidionConfig, lengths: Lengths) -> tuple[PyramidionConfig, Lengths]:
    """Return a small instance of a config: lengths and widths divided, at most two documents, nothing dropped out."""
    scorers = _options(config.scorer_args)
    attention, own = _options(config.self_attention_args), _options(config.decoder_self_attention_args)
    spans, own_spans = (
        [_spans(kind, options) for kind, options in _in_pairs(kinds.split(","), given)]
        for kinds, given in ((config.self_attention, attention), (config.decoder_self_attention, own))
    )
    pooled = {layer: pooling.length for layer, pooling in spec_of(config).encoder.poolings.items()}
    longest = config.max_source_positions or MAX_SOURCE_POSITIONS
    # Blocks of Funnel stay multiples of its window, a ratio that does not shrink.
    owns_layer = pooled and any(POOLING.takes(kind.strip(), "layer") for kind in config.pooling.split(","))
    window = -(-longest // min(pooled.values())) if owns_layer else 1
    by = math.gcd(_DIVISOR, *(span // window for named in (*spans, *own_spans) for span in named.values()))
    # Modules divide the width, as heads do.
    projected = (config.encoder_projections_args, config.decoder_projections_args, config.cross_projections_args)
    embed_dim = math.lcm(_HEAD_DIM * config.num_heads, *(loads(text).get("modules") or 1 for text in projected))
    attention = [_divided(options, named, by) for options, named in _in_pairs(attention, spans)]
    own = [_divided(options, named, by) for options, named in _in_pairs(own, own_spans)]
    for options in scorers:
        if "coordinate" in options:
            options["coordinate"] %= embed_dim
    ffn_embed_dim = 3 * embed_dim
    fed = [
        {**options, **_dividing(kind, options, ffn_embed_dim)}
        for kind, options in _in_pairs(config.feed_forward.split(","), _options(config.feed_forward_args))
    ]
    # Where a text decides how many vectors it becomes, it becomes as many as there may be, which is what is counted.
    pooling = [
        {**options, "prior": _ALMOST_ALL} if POOLING.takes(kind.strip(), "prior") else options
        for kind, options in _in_pairs(config.pooling.split(","), _options(config.pooling_args))
    ]
    lengths = Lengths(-(-lengths.source // by), -(-lengths.target // by), min(lengths.batch, 2))
    lengths = lengths._replace(vocab_size=_VOCABULARY)
    # The text is made of units that fill segments, so that no more vectors come out of it.
    segments = max((options.get("segment_length", 0) for options in attention), default=0)
    most = -(-lengths.source // segments) if segments else longest
    entries = [
        min(most, -(-pooled[layer] // by)) if layer in pooled else None for layer in range(config.encoder_layers)
    ]
    config = replace(
        config,
        embed_dim=embed_dim,
        ffn_embed_dim=ffn_embed_dim,
        self_attention_args=_text(attention),
        decoder_self_attention_args=_text(own),
        pooling_lengths=",".join(map(str, entries)) if pooled else None,
        max_source_positions=-(-longest // by),
        scorer_args=_text(scorers),
        feed_forward_args=_text(fed),
        pooling_args=_text(pooling),
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )
    return config, lengths


def _options(text: str) -> list[dict[str, Any]]:
    """Return the options of one part for all layers, or of one for each."""
    value = loads(text)
    return value if isinstance(value, list) else [value]


def _text(options: list[dict[str, Any]]) -> str:
    return dumps(options if len(options) > 1 else options[0])


def _in_pairs(some: list[Any], others: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Pair two lists; a single entry goes with each of the others."""
    count = max(len(some), len(others))
    return zip(some * (count // len(some)), others * (count // len(others)), strict=True)


def _spans(kind: str, options: dict[str, Any]) -> dict[str, int]:
    """Return the options that are lengths, by name, defaults included."""
    attention = ATTENTION[kind.strip()]
    return _given(attention, attention.lengths, options)


def _dividing(kind: str, options: dict[str, Any], ffn_embed_dim: int) -> dict[str, int]:
    """Return the options that divide the width of the feed-forward part, by name, for another width."""
    part = FEED_FORWARD[kind.strip()]
    given = _given(part, part.divisors, options)
    return {name: math.gcd(value, ffn_embed_dim) for name, value in given.items()}


def _given(part: type, names: Sequence[str], options: dict[str, Any]) -> dict[str, int]:
    """Return options of a part, by name, defaults included."""
    arguments = signature(part).parameters
    return {name: options.get(name, arguments[name].default) for name in names}


def _divided(options: dict[str, Any], spans: dict[str, int], by: int) -> dict[str, Any]:
    return {**options, **{name: span // by for name, span in spans.items()}}

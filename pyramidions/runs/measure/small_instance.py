"""Small instances of configs, which keep the proportions, and what they cost while they compute."""

import math
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from pyramidions.base.notation import Part, parse_parts, written_parts
from pyramidions.base.registry import Registry
from pyramidions.models import PyramidionConfig
from pyramidions.models.config import MAX_SOURCE_POSITIONS
from pyramidions.models.parse import spec_of
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.options import Role, is_window, options_of
from pyramidions.nn.pooling import POOLING
from pyramidions.runs.measure.cost import Cost, Lengths, cost_of, cost_of_run, model_of

_DIVISOR = 16  # of all lengths, as far as they are multiples of it
_HEAD_DIM = 4
_VOCABULARY = 611
_ATTENTION = ("self_attention", "decoder_self_attention")
_PROJECTIONS = ("encoder_projections", "decoder_projections", "cross_projections")
_SCALED = (*_ATTENTION, *_PROJECTIONS, "feed_forward", "scorer", "pooling")


class Comparison(NamedTuple):
    """What a small instance costs."""

    counted: Cost  # without computing
    measured: Cost  # while it computes

    def agrees(self) -> bool:
        return self.counted == self.measured

    def as_json(self) -> dict[str, Any]:
        return {"counted": self.counted.as_json(), "measured": self.measured.as_json(), "agrees": self.agrees()}


def compare(config: PyramidionConfig, lengths: Lengths) -> Comparison:
    """Count what a model costs without computing, then while it computes on random tokens on the CPU."""
    return Comparison(cost_of(config, lengths), cost_of_run(model_of(config, lengths), lengths))


def shrink(config: PyramidionConfig, lengths: Lengths) -> tuple[PyramidionConfig, Lengths]:
    """Return a small instance of a config: lengths and widths divided, at most two documents, nothing dropped out."""
    parts = {name: parse_parts(name, getattr(config, name)) for name in _SCALED}
    spans = [_spans(part) for name in _ATTENTION for part in chain(*parts[name])]
    pooled = {layer: pooling.length for layer, pooling in spec_of(config).encoder.poolings.items()}
    longest = config.max_source_positions or MAX_SOURCE_POSITIONS
    # Blocks of Funnel stay multiples of its window, a ratio that does not shrink.
    owns_layer = pooled and any(POOLING[part.kind].takes_layer for part in chain(*parts["pooling"]))
    window = -(-longest // min(pooled.values())) if owns_layer else 1
    by = math.gcd(_DIVISOR, *(span // window for named in spans for span in named.values()))
    # Modules divide the width, as heads do.
    projected = [part.options.get("modules") or 1 for name in _PROJECTIONS for part in chain(*parts[name])]
    embed_dim = math.lcm(_HEAD_DIM * config.num_heads, *projected)
    ffn_embed_dim = 3 * embed_dim

    def shrunk(name: str, part: Part) -> dict[str, Any]:
        if name in _ATTENTION:
            return {option: span // by for option, span in _spans(part).items()}
        if name == "feed_forward":
            divisors = _given(Role.DIVISOR, FEED_FORWARD, part)
            return {option: math.gcd(value, ffn_embed_dim) for option, value in divisors.items()}
        if name == "scorer" and "coordinate" in part.options:
            return {"coordinate": part.options["coordinate"] % embed_dim}
        # Where a text decides how many vectors it becomes, it becomes the most there may be, which is what is counted.
        return dict(POOLING[part.kind].most) if name == "pooling" else {}

    small: dict[str, Any] = {
        name: written_parts(
            [[Part(part.kind, {**part.options, **shrunk(name, part)}) for part in each] for each in parts[name]]
        )
        for name in _SCALED
    }
    lengths = Lengths(-(-lengths.source // by), -(-lengths.target // by), min(lengths.batch, 2))
    lengths = lengths._replace(vocab_size=_VOCABULARY)
    # The text is made of units that fill segments, so that no more vectors come out of it.
    attention = chain(*parse_parts("self_attention", small["self_attention"]))
    segments = max(part.options.get("segment_length", 0) for part in attention)
    most = -(-lengths.source // segments) if segments else longest
    entries = [
        min(most, -(-pooled[layer] // by)) if layer in pooled else None for layer in range(config.encoder_layers)
    ]
    config = replace(
        config,
        **small,
        embed_dim=embed_dim,
        ffn_embed_dim=ffn_embed_dim,
        pooling_lengths=",".join(map(str, entries)) if pooled else None,
        max_source_positions=-(-longest // by),
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )
    return config, lengths


def _spans(part: Part) -> dict[str, int]:
    """Return the options that are lengths, by name, defaults included; windows are rounded up to multiples of 4.

    So a window of 254 divides as one of 256 does, and stays even.
    """
    spans = _given(Role.LENGTH, ATTENTION, part)
    return {name: span + (-span % 4 if is_window(ATTENTION, part.kind, name) else 0) for name, span in spans.items()}


def _given(role: Role, registry: Registry[Any], part: Part) -> dict[str, int]:
    """Return options of a part that have a role, by name, defaults included."""
    return {name: part.options.get(name, usual) for name, usual in options_of(role, registry, part.kind).items()}

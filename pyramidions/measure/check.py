"""What is counted without computing, beside what is counted while a small instance computes."""

import math
from dataclasses import replace
from inspect import signature
from json import dumps
from typing import Any, NamedTuple

from pyramidions.measure.cost import Cost, Lengths, cost_of, cost_of_run
from pyramidions.measure.parts import Part
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.config import MAX_SOURCE_POSITIONS
from pyramidions.models.fields import parse_options, parse_pooling_lengths
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.pooling import POOLING

_DIVISOR = 16  # of all lengths, as far as they are multiples of it
_HEAD_DIM = 4
_LENGTH_OPTIONS = ("block_size", "bucket_size", "window")


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
        """Return both figures of each part as plain values."""
        counted, measured = (cost.as_json() for cost in self)

        def pairs(of: str) -> dict[Part, dict[str, int]]:
            return {part: {"counted": counted[of][part], "measured": measured[of][part]} for part in Part}

        return {
            "lengths": counted["lengths"],
            **{of: pairs(of) for of in ("matrix_products", "activation_bytes")},
            "agrees": self.agrees(),
        }


def shrink(config: PyramidionConfig, lengths: Lengths) -> tuple[PyramidionConfig, Lengths]:
    """Return a small instance of a config: lengths and widths divided, at most two documents, nothing dropped out."""
    options = parse_options(config.self_attention_args, "self_attention_args")
    arguments = signature(ATTENTION[config.self_attention]).parameters
    spans = {key: options.get(key, arguments[key].default) for key in _LENGTH_OPTIONS if key in arguments}
    pooled = parse_pooling_lengths(config.pooling_lengths, config.encoder_layers)
    longest = config.max_source_positions or MAX_SOURCE_POSITIONS
    # Blocks of Funnel stay multiples of its window, a ratio that does not shrink.
    window = -(-longest // min(pooled.values())) if POOLING.takes(config.pooling, "layer") and pooled else 1
    by = math.gcd(_DIVISOR, *(span // window for span in spans.values()))
    embed_dim = _HEAD_DIM * config.num_heads
    scorer_args = parse_options(config.scorer_args, "scorer_args")
    if "coordinate" in scorer_args:
        scorer_args["coordinate"] %= embed_dim
    entries = [-(-pooled[layer] // by) if layer in pooled else None for layer in range(config.encoder_layers)]
    small = replace(
        config,
        embed_dim=embed_dim,
        ffn_embed_dim=3 * embed_dim,
        self_attention_args=dumps({**options, **{key: span // by for key, span in spans.items()}}),
        pooling_lengths=",".join(map(str, entries)) if pooled else None,
        max_source_positions=-(-longest // by),
        scorer_args=dumps(scorer_args),
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )
    return small, Lengths(-(-lengths.source // by), -(-lengths.target // by), min(lengths.batch, 2), vocab_size=61)


def compare(config: PyramidionConfig, lengths: Lengths) -> Comparison:
    """Count what a model costs without computing, then while it computes on random tokens on the CPU.

    Args:
        config: the model's shape, small.
        lengths: of the batch, short.

    Raises:
        UserError: as `cost_of`.
    """
    return Comparison(cost_of(config, lengths), cost_of_run(build(config, lengths.vocab_size).train(), lengths))

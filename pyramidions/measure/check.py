"""The closed forms beside torch's own counters, on a small instance."""

import math
from dataclasses import replace
from inspect import signature
from json import dumps
from typing import Any, NamedTuple

from pyramidions.measure.activations import NotModelledError, activations
from pyramidions.measure.cost import multiplications, parameters
from pyramidions.measure.shapes import Lengths, Part
from pyramidions.measure.torch_counts import products_by_torch, saved_by_torch
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.config import MAX_SOURCE_POSITIONS
from pyramidions.models.fields import parse_options, parse_pooling_lengths
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.pooling import POOLING

_DIVISOR = 16  # of all lengths, as far as they are multiples of it
_HEAD_DIM = 4
_LENGTH_OPTIONS = ("block_size", "bucket_size", "window")


class Pair(NamedTuple):
    """A figure by closed form, and as it was measured."""

    counted: int
    measured: int


class Comparison(NamedTuple):
    """Closed forms and measurements of a small instance.

    Attributes:
        lengths: of the instance.
        products: multiplications in matrix products, by part.
        saved: bytes saved for the backward pass, by part; None where they are not modelled.
        not_modelled: why so; empty otherwise.
        parameters: of the model.
    """

    lengths: Lengths
    products: dict[Part, Pair]
    saved: dict[Part, Pair] | None
    not_modelled: str
    parameters: Pair

    def agrees(self) -> bool:
        """Return whether all figures are equal."""
        pairs = [*self.products.values(), *(self.saved or {}).values(), self.parameters]
        return all(pair.counted == pair.measured for pair in pairs)

    def as_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        saved = self.saved
        return {
            "lengths": self.lengths._asdict(),
            "matrix_products": {part: pair._asdict() for part, pair in self.products.items()},
            "activation_bytes": None if saved is None else {part: pair._asdict() for part, pair in saved.items()},
            "not_modelled": self.not_modelled or None,
            "parameters": self.parameters._asdict(),
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
    """Build a model, run it on random tokens on the CPU, and compare.

    Multiplications outside of matrix products, which torch does not count, are left out.

    Args:
        config: the model's shape, small.
        lengths: of the batch, short.

    Raises:
        UserError: a config that breaks a rule, or a kind that has no closed form.
    """
    counted = multiplications(config, lengths).products
    model = build(config, lengths.vocab_size).train()
    measured = products_by_torch(model, lengths)
    try:
        held = activations(config, lengths)
    except NotModelledError as error:
        saved, not_modelled = None, str(error)
    else:
        by_torch = saved_by_torch(model, lengths)
        saved, not_modelled = {part: Pair(held[part], by_torch[part]) for part in Part}, ""
    size = Pair(parameters(config, lengths.vocab_size), sum(p.numel() for p in model.parameters()))
    products = {part: Pair(counted[part], measured[part]) for part in Part}
    return Comparison(lengths, products, saved, not_modelled, size)

"""What a model is, as one flat list of fields: a point in the product of axes."""

import json
from dataclasses import dataclass, field
from typing import Any, Optional

from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.residual import RESIDUAL
from pyramidions.nn.scorer import SCORER

POSITIONS = ("none", "sinusoidal")
MAX_SOURCE_POSITIONS = 8192
MAX_TARGET_POSITIONS = 1024


def _choice(default: str, names: tuple[str, ...], text: str) -> Any:
    return field(default=default, metadata={"help": f"{text}: {', '.join(names)}"})


def _options(text: str) -> Any:
    return field(default="{}", metadata={"help": f"options of the {text}, as a JSON object"})


@dataclass
class PyramidionConfig:
    """Every choice that shapes a model; the defaults are the paper's shallow vanilla Transformer (table 5)."""

    embed_dim: int = field(default=512, metadata={"help": "width of a representation"})
    ffn_embed_dim: int = field(default=2048, metadata={"help": "width inside the feed-forward part"})
    num_heads: int = field(default=8, metadata={"help": "attention heads"})
    encoder_layers: int = field(default=2, metadata={"help": "encoder layers"})
    decoder_layers: int = field(default=2, metadata={"help": "decoder layers"})

    self_attention: str = _choice("full", ATTENTION.names, "attention among source positions")
    self_attention_args: str = _options("encoder's self-attention, e.g. '{\"block_size\": 512}'")
    cross_attention: str = _choice(
        "full",
        tuple(name for name in ATTENTION.names if ATTENTION[name].crosses),
        "attention from the decoder to the encoder's output",
    )
    cross_attention_args: str = _options("cross-attention")
    pooling: str = _choice("soft_topk", POOLING.names, "how representations are condensed")
    pooling_args: str = _options("pooling, e.g. '{\"base\": 20.0}'")
    pooling_lengths: Optional[str] = field(
        default=None,
        metadata={
            "help": "one entry per encoder layer: how many representations it hands on at most, or None for all "
            "it received, e.g. None,2048,512,None,None,None"
        },
    )
    max_source_positions: Optional[int] = field(
        default=None,
        metadata={
            "help": "tokens of the longest document, to which pooling at a fixed ratio (mean, max, index) refers; "
            f"{MAX_SOURCE_POSITIONS} if not given"
        },
    )
    scorer: str = _choice("linear", SCORER.names, "what rates representations for pooling")
    scorer_args: str = _options("scorer")
    feed_forward: str = _choice("dense", FEED_FORWARD.names, "what transforms each position")
    feed_forward_args: str = _options('feed-forward part, e.g. \'{"activation": "gelu"}\'')
    residual: str = _choice("plain", RESIDUAL.names, "how layers are stacked")
    checkpoint_activations: bool = field(
        default=False,
        metadata={
            "help": "keep of each layer (but one inside a pooler) its input only, and compute the rest again in the "
            "backward pass"
        },
    )
    normalize_before: bool = field(default=False, metadata={"help": "normalise before each sublayer (pre-norm)"})
    encoder_positions: str = _choice("sinusoidal", POSITIONS, "positions of source tokens")
    decoder_positions: str = _choice("none", POSITIONS, "positions of target tokens")

    dropout: float = field(default=0.1, metadata={"help": "dropout of sublayer outputs and embedded tokens"})
    attention_dropout: float = field(default=0.1, metadata={"help": "dropout of attention weights"})
    activation_dropout: float = field(default=0.1, metadata={"help": "dropout inside the feed-forward part"})

    decoding_beam: int = field(default=8, metadata={"help": "beam size at generation, unless --beam is given"})
    decoding_length_penalty: float = field(
        default=1.0, metadata={"help": "length penalty at generation, unless --lenpen is given"}
    )
    decoding_min_length: int = field(
        default=72, metadata={"help": "fewest tokens of a summary, unless --min-len is given"}
    )
    decoding_max_length: int = field(
        default=966, metadata={"help": "most tokens of a summary, unless --max-len-b is given"}
    )


def parse_options(text: str, name: str) -> dict[str, Any]:
    """Parse the JSON object of an ``..._args`` field.

    Raises:
        ValueError: not a JSON object.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"`{name}` must hold finite numbers, but holds {constant}.")

    try:
        options = json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"`{name}` must be a JSON object, but {text!r} is not JSON ({error}).") from None
    if not isinstance(options, dict):
        raise ValueError(f"`{name}` must be a JSON object, but is {text!r}.")
    return options


def parse_pooling_lengths(text: Optional[str], layers: int) -> dict[int, int]:
    """Return the pooled length after each layer that pools, by the layer's number (from 0).

    Args:
        text: the field ``pooling_lengths``.
        layers: encoder layers.

    Raises:
        ValueError: not one entry per layer, an entry that is no positive integer or None, or lengths that grow.
    """
    if text is None:
        return {}
    entries = [entry.strip() for entry in text.strip().strip("[]()").split(",")]
    if len(entries) != layers:
        raise ValueError(
            f"`pooling_lengths` must have one entry per encoder layer, but has {len(entries)} for {layers}: {text!r}."
        )
    lengths: dict[int, int] = {}
    last: Optional[int] = None
    for layer, entry in enumerate(entries):
        if entry.lower() in ("none", "null"):
            continue
        if not entry.isdecimal() or int(entry) < 1:
            raise ValueError(
                f"`pooling_lengths` must be positive integers or None, but layer {layer + 1} has {entry!r}."
            )
        length = int(entry)
        if last is not None and length > last:
            raise ValueError(f"`pooling_lengths` must not grow, but layer {layer + 1} hands on {length} after {last}.")
        lengths[layer] = last = length
    return lengths

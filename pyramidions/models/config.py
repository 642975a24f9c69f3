"""What a model is, as one flat list of fields: a point in the product of axes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Optional, get_type_hints

from pyramidions.errors import UserError
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.registry import fits, type_name
from pyramidions.nn.residual import RESIDUAL
from pyramidions.nn.scorer import SCORER
from pyramidions.strict_json import parse_json

POSITIONS = ("none", "sinusoidal")
MAX_SOURCE_POSITIONS = 8192
MAX_TARGET_POSITIONS = 1024
#: Tokens of a text that any model may be made for; a damaged number is far beyond.
LONGEST_TEXT = 2**24
_DIGITS = len(str(LONGEST_TEXT))


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


def config_of(values: Mapping[str, Any]) -> PyramidionConfig:
    """Return the config with these fields; the others keep their defaults.

    Args:
        values: from outside, by the names of the fields.

    Raises:
        UserError: a field that does not exist, or a value of another type than the field's. Whether it may have that
            value, `build` says.
    """
    hints = get_type_hints(PyramidionConfig)
    for name, value in values.items():
        if name not in hints:
            near = "".join(f"; did you mean {other!r}?" for other in get_close_matches(str(name), hints, 1))
            raise UserError(f"The model has no field {name!r}{near or '.'}")
        if not fits(value, hints[name]):
            raise UserError(f"`{name}` must be of type {type_name(hints[name])}, but is {shown(value)}.")
    return PyramidionConfig(**values)


def shown(value: Any) -> str:
    """Spell a value from outside for an error, a long one by its beginning."""
    text = repr(value) if isinstance(value, str | bytes | int | float | bool | None) else f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}…"


def check_lengths(source: Any, target: Any) -> None:
    """Refuse lengths of texts that no model can have.

    Args:
        source: most tokens of a document, its end included.
        target: most tokens of a summary, its end included.

    Raises:
        UserError: no whole number, below 2, or beyond `LONGEST_TEXT`.
    """
    for name, value in (("max_source_positions", source), ("max_target_positions", target)):
        if not fits(value, int) or not 2 <= value <= LONGEST_TEXT:
            raise UserError(f"`{name}` must be a whole number from 2 to {LONGEST_TEXT:,}, but is {shown(value)}.")


def parse_options(text: str, name: str) -> dict[str, Any]:
    """Parse the JSON object of an ``..._args`` field.

    Raises:
        UserError: not a JSON object, or a number that is not finite.
    """
    try:
        options = parse_json(text)
    except ValueError as error:
        raise UserError(f"`{name}` must be a JSON object, but {error}: {shown(text)}.") from None
    if not isinstance(options, dict):
        raise UserError(f"`{name}` must be a JSON object, but is {shown(text)}.")
    return options


def parse_pooling_lengths(text: Optional[str], layers: int) -> dict[int, int]:
    """Return the pooled length after each layer that pools, by the layer's number (from 0).

    Args:
        text: the field ``pooling_lengths``.
        layers: encoder layers.

    Raises:
        UserError: not one entry per layer, an entry that is no positive integer or None, or lengths that grow.
    """
    if text is None:
        return {}
    entries = [entry.strip() for entry in text.strip().strip("[]()").split(",")]
    if len(entries) != layers:
        raise UserError(
            f"`pooling_lengths` must have one entry per encoder layer, but has {len(entries)} for {layers}: "
            f"{shown(text)}."
        )
    lengths: dict[int, int] = {}
    last: Optional[int] = None
    for layer, entry in enumerate(entries):
        if entry.lower() in ("none", "null"):
            continue
        if not entry.isdecimal() or len(entry) > _DIGITS or not 1 <= int(entry) <= LONGEST_TEXT:
            raise UserError(
                f"`pooling_lengths` must be positive integers up to {LONGEST_TEXT:,} or None, "
                f"but layer {layer + 1} has {shown(entry)}."
            )
        length = int(entry)
        if last is not None and length > last:
            raise UserError(f"`pooling_lengths` must not grow, but layer {layer + 1} hands on {length} after {last}.")
        lengths[layer] = last = length
    return lengths

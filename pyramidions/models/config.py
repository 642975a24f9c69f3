"""The config of a model: a flat list of fields, a point in the product of axes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Optional, TypeVar, get_type_hints

from pyramidions.base.arguments import fits, rule_of, shown
from pyramidions.base.errors import UserError
from pyramidions.models.older_fields import ENDING, NONE, refuse_both, translate
from pyramidions.nn.attention import Feature, supporting
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.recurrence import RECURRENCE
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.stack import STACK
from pyramidions.nn.upsampling import UPSAMPLING

MAX_SOURCE_POSITIONS = 8192
MAX_TARGET_POSITIONS = 1024
#: The longest text of any model, in tokens; a damaged number is far beyond it.
LONGEST_TEXT = 2**24
#: What a decoder may read first, and its id in fairseq's dictionary; None for what fairseq's commands begin with.
STARTS: dict[str, int | None] = {"</s>": None, "<s>": 0}


def parts_field(default: str | None, names: tuple[str, ...], text: str) -> Any:
    """Return a field that describes parts, whose kinds have these names."""
    return field(default=default, metadata={"help": f"{text}: {', '.join(names)}", "describes_parts": True})


def part_fields(kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a kind of config that describe parts, with their defaults."""
    return {each.name: each.default for each in fields(kind) if "describes_parts" in each.metadata}


_MARKED = supporting(Feature.MARKS)


def per(each: str, order: str = "") -> str:
    """Return the remark that a field describes one part, or one for each unit."""
    return f"(one part, or one per {each} with | in between{', ' if order else ''}{order})"


@dataclass
class EncoderConfig:
    """Every choice that shapes an encoder."""

    embed_dim: int = field(default=512, metadata={"help": "width of a representation"})
    ffn_embed_dim: int = field(default=2048, metadata={"help": "width inside the feed-forward part"})
    num_heads: int = field(default=8, metadata={"help": "attention heads"})
    encoder_layers: int = field(default=2, metadata={"help": "encoder layers"})
    tag_dim: int = field(
        default=0,
        metadata={"help": "width of the embedding of a word's part of speech, and of its entity (`prepare --tags`)"},
    )

    self_attention: str = parts_field(
        "full",
        supporting(Feature.ITSELF),
        f"attention among source positions, e.g. 'blockwise(block_size=512)' {per('layer')}",
    )
    encoder_projections: str = parts_field("dense", PROJECTIONS.names, "projections of the encoder's self-attention")
    global_tokens: int = field(
        default=0,
        metadata={
            "help": "tokens at the beginning of a document that all others see and that see all others, for attention "
            f"that reads marks ({', '.join(_MARKED)})"
        },
    )
    global_markers: bool = field(
        default=False, metadata={"help": "sentence markers see everything and are seen everywhere, too"}
    )
    global_query: bool = field(
        default=False, metadata={"help": "the query's tokens see everything and are seen everywhere, too"}
    )
    global_projections: str = parts_field(
        NONE,
        (NONE, *PROJECTIONS.names),
        "projections of what global tokens see, beside those of all others; none for the same",
    )
    pooling: str = parts_field(
        "soft_topk",
        POOLING.names,
        f"how representations are condensed, e.g. 'soft_topk(base=20)' {per('pooling')}",
    )
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
            "help": "tokens of the longest document, to which pooling at a fixed ratio (mean, max, funnel) and the "
            f"stride of the scorer index refer; {MAX_SOURCE_POSITIONS} if not given"
        },
    )
    scorer: str = parts_field(
        "linear",
        SCORER.names,
        f"what rates representations for pooling {per('pooling')}",
    )
    upsampling: Optional[str] = parts_field(
        None,
        (NONE, *UPSAMPLING.names),
        "what brings the last layer's output back to the length before pooling, that of the pooling if not given "
        "(funnel: repeat)",
    )
    feed_forward: str = parts_field("dense", FEED_FORWARD.names, f"what transforms each position {per('layer')}")
    recurrence: str = parts_field(
        NONE, (NONE, *RECURRENCE.names), f"what passes over positions beside the feed-forward part {per('layer')}"
    )
    stack: str = parts_field(
        "plain",
        STACK.names,
        "how layers are composed; recomputing keeps of each layer (but one inside a pooler) its "
        "input only, and computes the rest again in the backward pass; reversible, for pre-norm models, keeps nothing "
        "of a layer: sublayers add to two streams in turn, so that inputs can be computed back",
    )
    checkpoint_activations: bool = field(default=False, metadata={"help": "fairseq's name for `--stack recomputing`"})
    normalize_before: bool = field(default=False, metadata={"help": "normalise before each sublayer (pre-norm)"})
    encoder_positions: str = parts_field("sinusoidal", (NONE, *POSITIONS.names), "positions of source tokens")
    layernorm_embedding: bool = field(default=False, metadata={"help": "normalise embedded tokens"})
    no_scale_embedding: bool = field(
        default=False, metadata={"help": "do not multiply token embeddings by the square root of their width"}
    )

    dropout: float = field(default=0.1, metadata={"help": "dropout of sublayer outputs and embedded tokens"})
    attention_dropout: float = field(default=0.1, metadata={"help": "dropout of attention weights"})
    activation_dropout: float = field(default=0.1, metadata={"help": "dropout inside the feed-forward part"})


@dataclass
class PyramidionConfig(EncoderConfig):
    """Every choice that shapes a model that writes.

    The defaults are the paper's shallow vanilla Transformer (table 5).
    """

    decoder_layers: int = field(default=2, metadata={"help": "decoder layers"})
    memories: str = field(
        default="last",
        metadata={
            "help": "what a decoder layer reads of the encoder, in that order: last for its output, and numbers of "
            "encoder layers (from 1) for theirs before pooling, e.g. 2,last"
        },
    )
    cross_attention: str = parts_field(
        "full",
        supporting(Feature.OTHERS),
        f"attention from the decoder to what it reads of the encoder {per('layer')}, for all memories or for each "
        "with ; in between",
    )
    decoder_self_attention: str = parts_field(
        "full",
        supporting(Feature.STEPS),
        f"attention among target positions {per('layer')}",
    )
    decoder_projections: str = parts_field("dense", PROJECTIONS.names, "projections of the decoder's self-attention")
    cross_projections: str = parts_field("dense", PROJECTIONS.names, "projections of the cross-attention")
    feed_forward: str = parts_field(
        "dense",
        FEED_FORWARD.names,
        f"what transforms each position {per('layer', 'the encoder first')}",
    )
    recurrence: str = parts_field(
        NONE,
        (NONE, *RECURRENCE.names),
        f"what passes over positions beside the feed-forward part {per('layer', 'the encoder first')}",
    )
    decoder_positions: str = parts_field(NONE, (NONE, *POSITIONS.names), "positions of target tokens")
    decoder: str = parts_field("cross_attending", DECODER.names, "how the decoder reads the encoder's output")
    decoder_start: str = field(
        default="</s>",
        metadata={"help": f"what the decoder reads before the first token of a summary: {', '.join(STARTS)}"},
    )
    output: str = parts_field("tied", OUTPUT.names, "from the last layer to the vocabulary; tied shares the embedding")

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
    decoding_no_repeat_ngram: int = field(
        default=0,
        metadata={
            "help": "n of the n-grams that a summary holds at most once, unless --no-repeat-ngram-size is given; 0 "
            "allows all"
        },
    )


@dataclass
class ExtractorConfig(EncoderConfig):
    """Every choice that shapes a model that rates sentences: an encoder and a linear layer on its vectors."""


Config = TypeVar("Config")


def names_in_files(kind: type[Any]) -> set[str]:
    """Return the names that fields of a kind of config have in files of any release."""
    return {each.name for each in fields(kind)} | {f"{name}{ENDING}" for name in part_fields(kind)}


def config_of(values: Mapping[str, Any]) -> PyramidionConfig:
    """Return `config_as` of a model that writes."""
    return config_as(PyramidionConfig, values)


def config_as(kind: type[Config], values: Mapping[str, Any], warn: bool = True) -> Config:
    """Return the config of a kind with these fields; the others keep their defaults.

    Args:
        kind: of the config.
        values: from outside, by the names of the fields, of this release or an older one.
        warn: of fields of older releases.

    Raises:
        UserError: a field that does not exist, a value of the wrong type, or options of a part in both languages.
            `build` checks the values themselves.
    """
    hints = get_type_hints(kind)
    refuse_both(values)
    values = translate(values, part_fields(kind), warn)
    for name, value in values.items():
        if name not in hints:
            near = "".join(f"; did you mean {other!r}?" for other in get_close_matches(str(name), hints, 1))
            raise UserError(f"The model has no field {name!r}{near or '.'}")
        if not fits(value, hints[name]):
            raise UserError(f"`{name}` must be {rule_of(hints[name])}, but is {shown(value)}.")
    return kind(**values)


def check_lengths(source: Any, target: Any) -> None:
    """Refuse lengths that no model can have.

    Args:
        source: most tokens of a document, its end included.
        target: most tokens of a summary, its end included.

    Raises:
        UserError: no whole number, below 2, or beyond `LONGEST_TEXT`.
    """
    for name, value in (("max_source_positions", source), ("max_target_positions", target)):
        if not fits(value, int) or not 2 <= value <= LONGEST_TEXT:
            raise UserError(f"`{name}` must be a whole number from 2 to {LONGEST_TEXT:,}, but is {shown(value)}.")

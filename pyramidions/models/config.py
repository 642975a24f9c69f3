"""The config of a model: a flat list of fields, a point in the product of axes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Optional, TypeVar, get_type_hints

from pyramidions.arguments import fits, rule_of, shown
from pyramidions.errors import UserError
from pyramidions.nn.attention import ATTENTION
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
#: Stands for no part, on axes that allow it.
NONE = "none"


def choice_field(default: str, names: tuple[str, ...], text: str) -> Any:
    """Return a field that names one of several kinds."""
    return field(default=default, metadata={"help": f"{text}: {', '.join(names)}"})


def options_field(text: str, each: str = "", default: str = "{}") -> Any:
    """Return a field with the options of a part, or one with those of the part of each unit."""
    listed = f", or a list of them, one per {each}" if each else ""
    return field(default=default, metadata={"help": f"options of the {text}, as a JSON object{listed}"})


_MARKED = tuple(name for name in ATTENTION.names if ATTENTION[name].takes("marks"))


def per(each: str, order: str = "") -> str:
    """Return the remark that a field names one kind, or one for each unit."""
    return f"(one kind, or one per {each} with commas in between{', ' if order else ''}{order})"


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

    self_attention: str = choice_field(
        "full",
        tuple(name for name in ATTENTION.names if not ATTENTION[name].crosses_only),
        f"attention among source positions {per('layer')}",
    )
    self_attention_args: str = options_field("encoder's self-attention, e.g. '{\"block_size\": 512}'", "layer")
    encoder_projections: str = choice_field("dense", PROJECTIONS.names, "projections of the encoder's self-attention")
    encoder_projections_args: str = options_field("projections of the encoder's self-attention")
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
    global_projections: str = choice_field(
        NONE,
        (NONE, *PROJECTIONS.names),
        "projections of what global tokens see, beside those of all others; none for the same",
    )
    global_projections_args: str = options_field("projections of what global tokens see")
    pooling: str = choice_field(
        "soft_topk",
        POOLING.names,
        f"how representations are condensed {per('pooling')}",
    )
    pooling_args: str = options_field("pooling, e.g. '{\"base\": 20.0}'", "pooling")
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
    scorer: str = choice_field(
        "linear",
        SCORER.names,
        f"what rates representations for pooling {per('pooling')}",
    )
    scorer_args: str = options_field("scorer", "pooling")
    upsampling: Optional[str] = field(
        default=None,
        metadata={
            "help": "what brings the last layer's output back to the length before pooling: "
            f"{', '.join((NONE, *UPSAMPLING.names))}; if not given, that of the pooling (funnel: repeat)"
        },
    )
    upsampling_args: str = options_field("upsampling")
    feed_forward: str = choice_field("dense", FEED_FORWARD.names, f"what transforms each position {per('layer')}")
    feed_forward_args: str = options_field('feed-forward part, e.g. \'{"activation": "gelu"}\'', "layer")
    recurrence: str = choice_field(
        NONE, (NONE, *RECURRENCE.names), f"what passes over positions beside the feed-forward part {per('layer')}"
    )
    recurrence_args: str = options_field("recurrence, e.g. '{\"dim\": 32}'", "layer")
    stack: str = choice_field(
        "plain",
        STACK.names,
        "how layers are composed; recomputing keeps of each layer (but one inside a pooler) its "
        "input only, and computes the rest again in the backward pass; reversible, for pre-norm models, keeps nothing "
        "of a layer: sublayers add to two streams in turn, so that inputs can be computed back",
    )
    stack_args: str = options_field("stack")
    checkpoint_activations: bool = field(default=False, metadata={"help": "fairseq's name for `--stack recomputing`"})
    normalize_before: bool = field(default=False, metadata={"help": "normalise before each sublayer (pre-norm)"})
    encoder_positions: str = choice_field("sinusoidal", (NONE, *POSITIONS.names), "positions of source tokens")
    encoder_positions_args: str = options_field("positions of source tokens")
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
    cross_attention: str = choice_field(
        "full",
        tuple(name for name in ATTENTION.names if ATTENTION[name].crosses),
        "attention from the decoder to what it reads of the encoder (one kind, or one per layer with commas in "
        "between; of several memories all that for each, with semicolons in between)",
    )
    cross_attention_args: str = field(
        default="{}",
        metadata={
            "help": "options of the cross-attention, as a JSON object, or a list of them, one per layer; of several "
            "memories one for all, or a list of all that, one per memory"
        },
    )
    decoder_self_attention: str = choice_field(
        "full",
        tuple(name for name in ATTENTION.names if ATTENTION[name].tells("step")),
        f"attention among target positions {per('layer')}",
    )
    decoder_self_attention_args: str = options_field("decoder's self-attention", "layer")
    decoder_projections: str = choice_field("dense", PROJECTIONS.names, "projections of the decoder's self-attention")
    decoder_projections_args: str = options_field("projections of the decoder's self-attention")
    cross_projections: str = choice_field("dense", PROJECTIONS.names, "projections of the cross-attention")
    cross_projections_args: str = options_field("projections of the cross-attention")
    feed_forward: str = choice_field(
        "dense",
        FEED_FORWARD.names,
        "what transforms each position (one kind, or one per layer with commas in between, the encoder's first)",
    )
    recurrence: str = choice_field(
        NONE,
        (NONE, *RECURRENCE.names),
        "what passes over positions beside the feed-forward part (one kind, or one per layer with commas in between, "
        "the encoder's first)",
    )
    decoder_positions: str = choice_field(NONE, (NONE, *POSITIONS.names), "positions of target tokens")
    decoder_positions_args: str = options_field("positions of target tokens")
    decoder: str = choice_field("cross_attending", DECODER.names, "how the decoder reads the encoder's output")
    decoder_args: str = options_field("decoder")
    decoder_start: str = choice_field(
        "</s>", tuple(STARTS), "what the decoder reads before the first token of a summary"
    )
    output: str = choice_field("tied", OUTPUT.names, "from the last layer to the vocabulary; tied shares the embedding")
    output_args: str = options_field("output layer")

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


def config_of(values: Mapping[str, Any]) -> PyramidionConfig:
    """Return `config_as` of a model that writes."""
    return config_as(PyramidionConfig, values)


def config_as(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Return the config of a kind with these fields; the others keep their defaults.

    Args:
        kind: of the config.
        values: from outside, by the names of the fields.

    Raises:
        UserError: a field that does not exist, or a value of the wrong type. `build` checks the values themselves.
    """
    hints = get_type_hints(kind)
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


def options_that_are_lengths() -> dict[str, list[str]]:
    """Return which options of parts are numbers of positions, by the field that has the options."""
    of_attention = sorted({option for name in ATTENTION.names for option in ATTENTION[name].lengths})
    return {
        "self_attention_args": of_attention,
        "decoder_self_attention_args": of_attention,
        "feed_forward_args": sorted({option for name in FEED_FORWARD.names for option in FEED_FORWARD[name].lengths}),
    }

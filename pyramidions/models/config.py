"""The config of a model: a flat list of fields, a point in the product of axes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Optional, Self, TypeVar, get_type_hints

from pyramidions.base.arguments import OneOf, Range, check_described, described, fits, rule_of, shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE, Part, lengths_in, parse_parts, written, written_parts
from pyramidions.base.reading import LONG
from pyramidions.models.fields import part_fields, parts_field, per, scaled_field
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.functional.kernels import AUTO, KERNELS
from pyramidions.nn.layer import NORMS
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.recurrence import RECURRENCE
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.segment_pooling import SEGMENT_UPSAMPLING, SEGMENTS
from pyramidions.nn.selector import SELECTOR
from pyramidions.nn.stack import STACK
from pyramidions.nn.upsampling import UPSAMPLING

MAX_SOURCE_POSITIONS = 8192
MAX_TARGET_POSITIONS = 1024
#: The longest text of any model, in tokens; a damaged number is far beyond it.
LONGEST_TEXT = 2**24
#: Parts of the names of fields about training and decoding: models that differ in these alone have the same shape.
NO_SHAPE = ("dropout", "checkpoint_activations", "kernels", "decoding_", "max_source_positions")
#: What a decoder may read first, beside a token by its id.
STARTS = ("</s>", "<pad>", "<s>")
#: What becomes of a summary of the most tokens; `pyramidions.nn.writer.ForcedEnd` has these.
FORCED_ENDS = ("counted", "uncounted", "no")
YES_OR_NO = ("yes", "no")

# Far beyond any model: a damaged number is refused before memory is asked for.
_WIDTH, _FFN_WIDTH, _HEADS, _LAYERS = Range(1, 2**16), Range(1, 2**20), Range(1, 2**10), Range(1, 1000)
_TOKENS, _TOKENS_OR_NONE = Range(1, LONGEST_TEXT), Range(0, LONGEST_TEXT)
_DROPPED = Range(0, 1, below=True)
_PENALTY = Range(-40, 40)  # The longest text to this power is a number.
_MARKED = supporting(Feature.MARKS)


class Spec:
    """What every config of a model can do."""

    def replace(self, **changes: Any) -> Self:
        """Return this config with other fields; a part may be a text or a `Part`, and lengths a text or a list."""
        return config_as(type(self), {**vars(self), **{name: _text(value) for name, value in changes.items()}})

    def scaled(self, lengths: int = 1, widths: int = 1) -> Self:
        """Return this config with its lengths and widths divided, as `scaled_field` does."""
        kind = type(self)
        return kind(**{name: scaled_field(kind, name, value, lengths, widths) for name, value in vars(self).items()})


def _text(value: Any) -> Any:
    if isinstance(value, Part):
        return written(value)
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


@dataclass
class EncoderConfig(Spec):
    """Every choice that shapes an encoder."""

    embed_dim: int = described(512, "width of a representation", _WIDTH)
    ffn_embed_dim: int = described(2048, "width inside the feed-forward part", _FFN_WIDTH)
    num_heads: int = described(8, "attention heads", _HEADS)
    encoder_layers: int = described(2, "encoder layers", _LAYERS)
    tag_dim: int = described(
        0, "width of the embedding of a word's part of speech, and of its entity (`prepare --tags`)", Range(0, 2**16)
    )

    self_attention: str = parts_field(
        "full",
        ATTENTION,
        f"attention among source positions, e.g. 'blockwise(block_size=512)' {per('layer')}",
        kinds=supporting(Feature.ITSELF),
    )
    encoder_projections: str = parts_field("dense", PROJECTIONS, "projections of the encoder's self-attention")
    global_tokens: int = described(
        0,
        "tokens at the beginning of a document that all others see and that see all others, for attention "
        f"that reads marks ({', '.join(_MARKED)})",
        _TOKENS_OR_NONE,
    )
    global_markers: bool = described(
        False, "sentence markers, or separators of documents, see everything and are seen everywhere, too"
    )
    global_query: bool = described(False, "the query's tokens see everything and are seen everywhere, too")
    global_vectors: int = described(
        0,
        "learned vectors that all positions of a document see and that see all of them, with norms of their own",
        _TOKENS_OR_NONE,
    )
    global_projections: str = parts_field(
        NONE,
        PROJECTIONS,
        "projections of what global tokens see, beside those of all others; none for the same",
        optional=True,
    )
    pooling: str = parts_field(
        "soft_topk",
        POOLING,
        f"how representations are condensed, e.g. 'soft_topk(base=20)' {per('pooling')}",
    )
    pooling_lengths: Optional[str] = described(
        None,
        "one entry per encoder layer: how many representations it hands on at most, or None for all "
        "it received, e.g. None,2048,512,None,None,None",
    )
    max_source_positions: Optional[int] = described(
        None,
        "tokens of the longest document, to which pooling at a fixed ratio (mean, adaptive_mean, max, funnel) and the "
        f"stride of the scorer index refer; {MAX_SOURCE_POSITIONS} if not given",
    )
    scorer: str = parts_field(
        "linear",
        SCORER,
        f"what rates representations for pooling {per('pooling')}",
    )
    upsampling: Optional[str] = parts_field(
        None,
        UPSAMPLING,
        "what brings the last layer's output back to the length before pooling, that of the pooling if not given "
        "(funnel: repeat); with top_down(layers=4) the last 4 layers run at that length, and cross-attend to it",
        optional=True,
    )
    feed_forward: str = parts_field("dense", FEED_FORWARD, f"what transforms each position {per('layer')}")
    recurrence: str = parts_field(
        NONE, RECURRENCE, f"what passes over positions beside the feed-forward part {per('layer')}", optional=True
    )
    stack: str = parts_field(
        "plain",
        STACK,
        "how layers are composed; recomputing keeps of each layer (but one inside a pooler) its "
        "input only, and computes the rest again in the backward pass; reversible, for pre-norm models, keeps nothing "
        "of a layer: sublayers add to two streams in turn, so that inputs can be computed back",
    )
    checkpoint_activations: bool = described(False, "fairseq's name for `--stack recomputing`")
    kernels: str = described(
        AUTO,
        "how a GPU computes the windows of sliding_window and strided(split_heads=True): auto, or flex, torch's "
        "FlexAttention, where no attention weight is dropped; no GPU has run flex yet",
        OneOf(KERNELS),
    )
    normalize_before: bool = described(False, "normalise before each sublayer (pre-norm)")
    norm: str = described("layer", f"how vectors are normalised: {', '.join(NORMS)}", OneOf(tuple(NORMS)))
    encoder_positions: str = parts_field("sinusoidal", POSITIONS, "positions of source tokens", optional=True)
    layernorm_embedding: bool = described(False, "normalise embedded tokens")
    no_scale_embedding: bool = described(False, "do not multiply token embeddings by the square root of their width")

    dropout: float = described(0.1, "dropout of sublayer outputs and embedded tokens", _DROPPED)
    attention_dropout: float = described(0.1, "dropout of attention weights", _DROPPED)
    activation_dropout: float = described(0.1, "dropout inside the feed-forward part", _DROPPED)


@dataclass
class PyramidionConfig(EncoderConfig):
    """Every choice that shapes a model that writes.

    The defaults are the paper's shallow vanilla Transformer (table 5).
    """

    decoder_layers: int = described(2, "decoder layers", _LAYERS)
    memories: str = described(
        "last",
        "what a decoder layer reads of the encoder, in that order: last for its output, and numbers of "
        "encoder layers (from 1) for theirs before pooling, e.g. 2,last",
    )
    cross_attention: str = parts_field(
        "full",
        ATTENTION,
        f"attention from the decoder to what it reads of the encoder {per('layer')}, for all memories or for each "
        "with ; in between",
        kinds=supporting(Feature.OTHERS),
    )
    decoder_self_attention: str = parts_field(
        "full",
        ATTENTION,
        f"attention among target positions {per('layer')}",
        kinds=supporting(Feature.STEPS),
    )
    decoder_projections: str = parts_field("dense", PROJECTIONS, "projections of the decoder's self-attention")
    cross_projections: str = parts_field("dense", PROJECTIONS, "projections of the cross-attention")
    feed_forward: str = parts_field(
        "dense",
        FEED_FORWARD,
        f"what transforms each position {per('layer', 'the encoder first')}",
    )
    recurrence: str = parts_field(
        NONE,
        RECURRENCE,
        f"what passes over positions beside the feed-forward part {per('layer', 'the encoder first')}",
        optional=True,
    )
    decoder_positions: str = parts_field(NONE, POSITIONS, "positions of target tokens", optional=True)
    decoder: str = parts_field("cross_attending", DECODER, "how the decoder reads the encoder's output")
    decoder_start: str = described(
        "</s>", f"what the decoder reads before the first token of a summary: {', '.join(STARTS)}, or an id"
    )
    output: str = parts_field("tied", OUTPUT, "from the last layer to the vocabulary; tied shares the embedding")

    decoding_beam: int = described(8, "beam size at generation, unless --beam is given", Range(1, 2**10))
    decoding_length_penalty: float = described(1.0, "length penalty at generation, unless --lenpen is given", _PENALTY)
    decoding_min_length: int = described(72, "fewest tokens of a summary, unless --min-len is given", _TOKENS_OR_NONE)
    decoding_max_length: int = described(966, "most tokens of a summary, unless --max-len-b is given", _TOKENS)
    decoding_no_repeat_ngram: int = described(
        0,
        "n of the n-grams that a summary holds at most once, unless --no-repeat-ngram-size is given; 0 allows all",
        _TOKENS_OR_NONE,
    )
    decoding_forced_start: str = described(
        "yes", "begin each summary with the tokens that the tokenizer begins each text with: yes, no", OneOf(YES_OR_NO)
    )
    decoding_forced_end: str = described(
        "counted",
        "end a summary of the most tokens by force, and count the log-probability of its end, as fairseq does "
        "(counted), or not, as transformers does (uncounted); no lets it end in any token",
        OneOf(FORCED_ENDS),
    )
    decoding_early_stopping: str = described(
        "yes",
        "stop at as many finished summaries as beams, as fairseq does; no searches on until no other can win, as "
        "transformers does by default: yes, no",
        OneOf(YES_OR_NO),
    )
    decoding_long: str = described(
        "truncate",
        f"how `pyramidions summarize` reads a document that is longer than the model reads, unless --long is given: "
        f"{', '.join(LONG)}",
        OneOf(LONG),
    )


@dataclass
class ExtractorConfig(EncoderConfig):
    """Every choice that shapes a model that selects sentences: an encoder, and what selects by its vectors."""

    selector: str = parts_field("independent", SELECTOR, "what selects sentences by their vectors")


@dataclass
class LanguageModelConfig(Spec):
    """Every choice that shapes a language model.

    The defaults are those of Nawrot et al. 2023, without boundaries.
    """

    embed_dim: int = described(512, "width of a representation", _WIDTH)
    ffn_embed_dim: int = described(2048, "width inside the feed-forward part and the predictor", _FFN_WIDTH)
    num_heads: int = described(8, "attention heads", _HEADS)
    layers: str = described(
        "2,8,2",
        "layers that read tokens, segments, and tokens again; five numbers for an hourglass within an "
        "hourglass, e.g. 2,1,6,1,2; one number for layers that read tokens",
    )
    boundaries: str = parts_field(
        NONE,
        BOUNDARIES,
        f"what marks where segments end, e.g. 'fixed(factor=3)' {per('hourglass', 'the outer first')}",
        optional=True,
    )
    segments: str = parts_field("mean", SEGMENTS, f"what becomes the vector of a segment {per('hourglass')}")
    upsampling: str = parts_field(
        "repeat",
        SEGMENT_UPSAMPLING,
        f"what brings segments back to the positions that they stand for {per('hourglass')}",
    )
    self_attention: str = parts_field(
        "relative",
        ATTENTION,
        f"attention among tokens and among segments {per('layer')}",
        kinds=supporting(Feature.STEPS),
    )
    feed_forward: str = parts_field(
        "dense(activation='gelu')", FEED_FORWARD, f"what transforms each position {per('layer')}"
    )
    stack: str = parts_field("plain", STACK, "how layers are composed; recomputing saves memory")
    checkpoint_activations: bool = described(False, "fairseq's name for `--stack recomputing`")
    normalize_before: bool = described(False, "normalise before each sublayer (pre-norm)")
    output: str = parts_field(
        "untied(bias=True)", OUTPUT, "from the last layer to the vocabulary; tied shares the embedding"
    )
    dropout: float = described(0.1, "dropout of sublayer outputs, embedded tokens and sinusoids of distances", _DROPPED)
    attention_dropout: float = described(0.1, "dropout of attention weights", _DROPPED)
    activation_dropout: float = described(0.1, "dropout inside the feed-forward part", _DROPPED)


Config = TypeVar("Config")


def in_one_spelling(values: Mapping[str, Any], parts: Collection[str]) -> dict[str, Any]:
    """Return fields by name, with ``parts`` and pooled lengths in the spelling that our files have."""
    spelled = {
        name: written_parts(parse_parts(name, text))
        for name, text in values.items()
        if name in parts and isinstance(text, str)
    }
    if isinstance(lengths := values.get("pooling_lengths"), str):
        spelled["pooling_lengths"] = ",".join(lengths_in(lengths))
    return {**values, **spelled}


def config_as(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Return the config of a kind with these fields, by name, from outside; the others keep their defaults.

    Raises:
        UserError: a field that does not exist, or a value of the wrong type. `build` checks the values themselves.
    """
    hints = get_type_hints(kind)
    values = in_one_spelling(values, part_fields(kind))
    for name, value in values.items():
        if name not in hints:
            near = "".join(f"; did you mean {other!r}?" for other in get_close_matches(str(name), hints, 1))
            raise UserError(f"The model has no field {name!r}{near or '.'}")
        if not fits(value, hints[name]):
            raise UserError(f"`{name}` must be {rule_of(hints[name])}, but is {shown(value)}.")
    return kind(**values)


def check_numbers(config: Spec) -> None:
    """Refuse values that no model can have."""
    check_described(config, config, "`{}`".format)
    if getattr(config, "max_source_positions", None) is not None:
        check_lengths(config.max_source_positions, LONGEST_TEXT)  # type: ignore[attr-defined]


def check_lengths(source: Any, target: Any) -> None:
    """Refuse lengths, in tokens with the end included, that no document or summary of a model can have."""
    for name, value in (("max_source_positions", source), ("max_target_positions", target)):
        if not fits(value, int) or not 2 <= value <= LONGEST_TEXT:
            raise UserError(f"`{name}` must be a whole number from 2 to {LONGEST_TEXT:,}, but is {shown(value)}.")

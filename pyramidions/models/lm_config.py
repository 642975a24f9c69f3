"""The config of a language model: a flat list of fields, a point in the product of axes."""

from dataclasses import dataclass, field

from pyramidions.models.config import parts_field, per
from pyramidions.models.older_fields import NONE
from pyramidions.nn.attention import Feature, supporting
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.segments import SEGMENTS
from pyramidions.nn.stack import STACK


@dataclass
class LanguageModelConfig:
    """Every choice that shapes a language model.

    The defaults are those of Nawrot et al. 2023, without boundaries.
    """

    embed_dim: int = field(default=512, metadata={"help": "width of a representation"})
    ffn_embed_dim: int = field(default=2048, metadata={"help": "width inside the feed-forward part and the predictor"})
    num_heads: int = field(default=8, metadata={"help": "attention heads"})
    layers: str = field(
        default="2,8,2",
        metadata={
            "help": "layers that read tokens, segments, and tokens again; five numbers for an hourglass within an "
            "hourglass, e.g. 2,1,6,1,2; one number for layers that read tokens"
        },
    )
    boundaries: str = parts_field(
        NONE,
        (NONE, *BOUNDARIES.names),
        f"what marks where segments end, e.g. 'fixed(factor=3)' {per('hourglass', 'the outer first')}",
    )
    segments: str = parts_field("mean", SEGMENTS.names, f"what becomes the vector of a segment {per('hourglass')}")
    self_attention: str = parts_field(
        "relative",
        supporting(Feature.STEPS),
        f"attention among tokens and among segments {per('layer')}",
    )
    feed_forward: str = parts_field(
        "dense(activation='gelu')", FEED_FORWARD.names, f"what transforms each position {per('layer')}"
    )
    stack: str = parts_field("plain", STACK.names, "how layers are composed; recomputing saves memory")
    checkpoint_activations: bool = field(default=False, metadata={"help": "fairseq's name for `--stack recomputing`"})
    normalize_before: bool = field(default=False, metadata={"help": "normalise before each sublayer (pre-norm)"})
    output: str = parts_field(
        "untied(bias=True)", OUTPUT.names, "from the last layer to the vocabulary; tied shares the embedding"
    )
    dropout: float = field(
        default=0.1, metadata={"help": "dropout of sublayer outputs, embedded tokens and sinusoids of distances"}
    )
    attention_dropout: float = field(default=0.1, metadata={"help": "dropout of attention weights"})
    activation_dropout: float = field(default=0.1, metadata={"help": "dropout inside the feed-forward part"})

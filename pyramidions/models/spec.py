"""What a model is made of, typed and frozen: `parse` reads it from a flat config, `assembly` makes modules of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Part:
    """A kind of one axis, by its name in the axis's registry, with its options."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))


@dataclass(frozen=True)
class AttentionSpec:
    """An attention sublayer.

    Attributes:
        attention: the kind, between projected heads.
        projections: of queries, keys, values and the output.
        reads: the layer's own sequence (None), or the memory of this number (from 0).
        is_causal: position i sees positions up to i.
        global_projections: of what marked positions see, or None for the same.
        place: among the layer's self-attentions, from 0.
    """

    attention: Part
    projections: Part
    reads: int | None = None
    is_causal: bool = False
    global_projections: Part | None = None
    place: int = 0

    @property
    def name(self) -> str:
        """Its name in a layer."""
        if self.reads is None:
            return f"self_attention_{self.place + 1}" if self.place else "self_attention"
        return f"cross_attention_{self.reads + 1}" if self.reads else "cross_attention"


@dataclass(frozen=True)
class FeedForwardSpec:
    """A feed-forward sublayer, with a recurrence beside it or None."""

    feed_forward: Part
    recurrence: Part | None = None
    name: str = "feed_forward"


@dataclass(frozen=True)
class LayerSpec:
    """A layer: its sublayers, in order."""

    sublayers: tuple[AttentionSpec | FeedForwardSpec, ...]

    @property
    def self_attention(self) -> AttentionSpec:
        """The sublayer of that name."""
        (found,) = (s for s in self.sublayers if isinstance(s, AttentionSpec) and s.reads is None)
        return found


@dataclass(frozen=True)
class PoolingSpec:
    """What follows the layers of a stage.

    Attributes:
        pooler: the kind of pooling.
        length: representations that it hands on at most, K.
        window: positions that one of them stands for, if the kind pools at a fixed ratio.
        scorer: rates representations; None if the kind takes no scorer.
        layer: owned by the pooler; None if the kind owns none.
        upsampler: brings the output of the inner stages back to the length before, or None.
    """

    pooler: Part
    length: int
    window: int
    scorer: Part | None = None
    layer: LayerSpec | None = None
    upsampler: Part | None = None


@dataclass(frozen=True)
class StageSpec:
    """Layers, the pooling after them, and with upsampling the stages in between.

    Attributes:
        layers: in order.
        longest: positions that the first of them reads at most.
        pooling: what follows, or None.
        inner: stages between pooling and upsampling.
        is_memory: the decoder reads what the layers hand on.
    """

    layers: tuple[LayerSpec, ...]
    longest: int
    pooling: PoolingSpec | None = None
    inner: tuple["StageSpec", ...] = ()
    is_memory: bool = False

    def all_stages(self) -> "Iterator[StageSpec]":
        """Yield this stage and all within it, in the order in which their layers run."""
        yield self
        for stage in self.inner:
            yield from stage.all_stages()


@dataclass(frozen=True)
class EmbedderSpec:
    """How tokens are embedded: positions (None: none), a norm after the sum, times sqrt(D), tags (0: none)."""

    positions: Part | None
    norm: bool = False
    scale: bool = True
    tag_dim: int = 0


@dataclass(frozen=True)
class EncoderSpec:
    """An embedder and stages, whose layers ``stack`` composes.

    Attributes:
        embedder: of source tokens.
        stages: run one after the other.
        stack: composes their layers.
        memories: what the decoder reads, in that order: by its number (from 0) the output of a stage that is a memory,
            or None for that of the last layer.
        global_tokens: so many at the beginning of a document are global.
        global_markers: sentence markers are global.
        global_query: the tokens of the query are global.
    """

    embedder: EmbedderSpec
    stages: tuple[StageSpec, ...]
    stack: Part
    memories: tuple[int | None, ...] = (None,)
    global_tokens: int = 0
    global_markers: bool = False
    global_query: bool = False

    def all_stages(self) -> Iterator[StageSpec]:
        """Yield all stages, inner ones too, in the order in which their layers run."""
        for stage in self.stages:
            yield from stage.all_stages()

    @property
    def longest(self) -> int:
        """Tokens of the longest document."""
        return self.stages[0].longest

    @property
    def handed_on(self) -> int:
        """The most vectors of a document that the last stage hands on."""
        last = self.stages[-1]
        if last.pooling is None or last.pooling.upsampler is not None:
            return last.longest
        return min(last.longest, last.pooling.length)

    @property
    def poolings(self) -> dict[int, PoolingSpec]:
        """What pools, by the number of the layer before it (from 0)."""
        poolings, run = {}, 0
        for stage in self.all_stages():
            run += len(stage.layers)
            if stage.pooling is not None:
                poolings[run - 1] = stage.pooling
                run += stage.pooling.layer is not None
        return poolings


@dataclass(frozen=True)
class DecoderSpec:
    """A kind of decoder, its embedder, layers and output layer; ``stack`` composes the layers.

    ``start`` is the token that it reads first, or None for `</s>`.
    """

    decoder: Part
    embedder: EmbedderSpec
    layers: tuple[LayerSpec, ...]
    stack: Part
    output: Part
    start: int | None = None

    @property
    def reads_streams(self) -> bool:
        """Whether both streams of the encoder's stack go on in the decoder's."""
        return self.decoder.options.get("reads_streams") is True


@dataclass(frozen=True)
class ShapeSpec:
    """What all models have.

    Attributes:
        embed_dim: D.
        ffn_embed_dim: width inside a feed-forward part.
        num_heads: H.
        dropout: of sublayer outputs and embedded tokens.
        attention_dropout: of attention weights.
        activation_dropout: after the activation of a feed-forward part.
        normalize_before: pre-norm.
    """

    embed_dim: int
    ffn_embed_dim: int
    num_heads: int
    dropout: float
    attention_dropout: float
    activation_dropout: float
    normalize_before: bool


@dataclass(frozen=True)
class ExtractorSpec(ShapeSpec):
    """A model that only reads.

    Attributes:
        encoder: reads the document.
    """

    encoder: EncoderSpec


@dataclass(frozen=True)
class ModelSpec(ExtractorSpec):
    """A model that writes as well.

    Attributes:
        decoder: writes the summary.
    """

    decoder: DecoderSpec


@dataclass(frozen=True)
class ShortenedSpec:
    """An hourglass over segments.

    Attributes:
        boundaries: mark where segments end.
        segments: make one vector of each.
        inner: reads them.
    """

    boundaries: Part
    segments: Part
    inner: "HourglassSpec"


@dataclass(frozen=True)
class HourglassSpec:
    """Layers, a shortened part or None, and layers again."""

    before: tuple[LayerSpec, ...]
    shortened: ShortenedSpec | None = None
    after: tuple[LayerSpec, ...] = ()


@dataclass(frozen=True)
class LanguageModelSpec(ShapeSpec):
    """A model that only writes: an hourglass, whose layers ``stack`` composes, and an output layer."""

    hourglass: HourglassSpec
    stack: Part
    output: Part

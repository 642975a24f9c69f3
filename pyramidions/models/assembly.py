"""From the specs of parts to modules: the one place that reads both specs and registries."""

from functools import cached_property
from itertools import count
from typing import Any, TypeVar

from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.base.registry import Registry
from pyramidions.models.rules import NEEDS_MARKERS, reads_query
from pyramidions.models.spec import (
    AttentionSpec,
    DecoderSpec,
    EmbedderSpec,
    EncoderSpec,
    FeedForwardSpec,
    HourglassSpec,
    LanguageModelSpec,
    LayerSpec,
    Part,
    PoolingSpec,
    ShapeSpec,
    StageSpec,
)
from pyramidions.nn import Decoder, Encoder, LanguageModel
from pyramidions.nn.attention import (
    ATTENTION,
    CoreAttention,
    CrossAttention,
    Distances,
    Feature,
    GlobalRows,
    SelfAttention,
)
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.embedding import Embedder, TagEmbeddings
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.hourglass import Hourglass, Shortened
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.marks import Marking
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING, Pooler
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS, Projections
from pyramidions.nn.recurrence import RECURRENCE, Recurrence
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.segments import SEGMENTS
from pyramidions.nn.stack import STACK, Stack
from pyramidions.nn.stage import Stage
from pyramidions.nn.sublayer import SublayerFunction
from pyramidions.nn.upsampling import UPSAMPLING

Made = TypeVar("Made")


class Assembly:
    """Makes modules from specs.

    Args:
        spec: of the whole model.
        vocab_size: V.
    """

    def __init__(self, spec: ShapeSpec, vocab_size: int) -> None:
        self.spec = spec
        #: of attention sublayers, in the order in which they are built: those of the encoder's layers come first
        self._numbers = count()
        #: what every part is offered; a part takes what its constructor names
        self.setting = {
            "embed_dim": spec.embed_dim,
            "num_heads": spec.num_heads,
            "head_dim": spec.embed_dim // spec.num_heads,
            "ffn_embed_dim": spec.ffn_embed_dim,
            "vocab_size": vocab_size,
            "activation_dropout": spec.activation_dropout,
            "normalize_before": spec.normalize_before,
        }

    def made(self, registry: Registry[Made], part: Part, **given: Any) -> Made:
        """Return a part, offered the ``given`` besides what every part is."""
        return registry.build(part.kind, part.options, **self.setting, **given)

    def encoder(
        self,
        spec: EncoderSpec,
        embedding: nn.Embedding,
        marker_idx: int | None,
        known_marker: int | None,
        separator_idx: int | None = None,
        name_end_idx: int | None = None,
        merges: bool = True,
    ) -> Encoder:
        """Make an encoder.

        Args:
            spec: of the encoder.
            embedding: of tokens.
            marker_idx: the marker, if units are asked for.
            known_marker: that of the vocabulary, or None.
            separator_idx, name_end_idx: as in `build`.
            merges: the streams of the stack are merged and normalised at the end; without, they are handed on. One
                stream is always normalised.
        """
        merges = merges or STACK[spec.stack.kind].streams == 1
        if not merges and spec.stages[-1].pooling is not None:
            raise UserError("`reads_streams` of the decoder needs layers after the last pooling of the encoder.")
        if spec.global_markers and known_marker is None:
            raise UserError(f"`global_markers` {NEEDS_MARKERS}")
        # All layers before any pooler: a seed gives the same weights wherever poolings stand.
        built = iter([[self.layer(layer, of.longest) for layer in of.layers] for of in spec.all_stages()])

        def stage(of: StageSpec) -> Stage:
            layers = next(built)
            memory = (self.norm() or nn.Identity()) if of.is_memory else None
            if of.pooling is None:
                return Stage(layers, memory=memory)
            pooler, upsampler = self.pooler(of.pooling, of.longest), of.pooling.upsampler
            up = None
            if upsampler is not None:
                up = self.made(UPSAMPLING, upsampler, window=of.pooling.window)
            return Stage(layers, pooler, tuple(stage(inner) for inner in of.inner), up, memory)

        return Encoder(
            self.embedder(spec.embedder, embedding, spec.longest),
            [stage(of) for of in spec.stages],
            self.stack(spec.stack),
            self.norm() if merges else None,
            marker_idx,
            Marking(spec.global_tokens, known_marker if spec.global_markers else None),
            separator_idx,
            spec.global_query,
            reads_query(spec),
            spec.memories,
            name_end_idx,
            None if merges else self.stack(spec.stack, merges=False),
        )

    def decoder(self, spec: DecoderSpec, embedding: nn.Embedding, longest: int, memory_length: int) -> Decoder:
        """Make a decoder.

        Args:
            spec: of the decoder.
            embedding: of tokens.
            longest: tokens of the longest summary.
            memory_length: the most vectors of a document that the encoder hands on.
        """
        before = memory_length if DECODER[spec.decoder.kind].joins else 0
        return self.made(
            DECODER,
            spec.decoder,
            embedder=self.embedder(spec.embedder, embedding, longest),
            layers=[self.layer(layer, before + longest) for layer in spec.layers],
            stack=self.stack(spec.stack, opened=spec.reads_streams),
            output=self.made(OUTPUT, spec.output),
            norm=self.norm(),
            start=spec.start,
            memory_length=memory_length,
        )

    def embedder(self, spec: EmbedderSpec, embedding: nn.Embedding, longest: int) -> Embedder:
        return Embedder(
            embedding,
            None if spec.positions is None else self.made(POSITIONS, spec.positions, max_length=longest),
            nn.LayerNorm(self.spec.embed_dim) if spec.norm else None,
            spec.scale,
            self.spec.dropout,
            TagEmbeddings(self.spec.embed_dim, spec.tag_dim) if spec.tag_dim else None,
        )

    def stack(self, part: Part, *, opened: bool = False, merges: bool = True) -> Stack:
        return self.made(STACK, part, opened=opened, merges=merges)

    def norm(self) -> nn.LayerNorm | None:
        """Return the norm of the last layer's output, which pre-norm models have."""
        return nn.LayerNorm(self.spec.embed_dim) if self.spec.normalize_before else None

    def layer(self, spec: LayerSpec, longest: int | None = None) -> Layer:
        functions = {sublayer.name: self.function(sublayer, longest) for sublayer in spec.sublayers}
        confined_to = next((one.confined_to for one in functions.values() if isinstance(one, SelfAttention)), None)
        return self._layer(spec, functions, confined_to)

    def _layer(self, spec: LayerSpec, functions: dict[str, SublayerFunction], confined_to: int | None) -> Layer:
        """Return the layer of these functions, whose attention stays within blocks of ``confined_to``."""
        around = (self.spec.embed_dim, self.spec.dropout, self.spec.normalize_before)
        beside = {
            sublayer.name: self.recurrence(sublayer.recurrence, confined_to)
            for sublayer in spec.sublayers
            if isinstance(sublayer, FeedForwardSpec) and sublayer.recurrence is not None
        }
        return Layer({name: Sublayer(one, *around, beside=beside.get(name)) for name, one in functions.items()})

    def recurrence(self, part: Part, confined_to: int | None) -> Recurrence:
        return self.made(RECURRENCE, part, confined_to=confined_to)

    def function(self, spec: AttentionSpec | FeedForwardSpec, longest: int | None) -> SublayerFunction:
        if isinstance(spec, FeedForwardSpec):
            return self.made(FEED_FORWARD, spec.feed_forward)
        attention = self.attention(spec, longest)
        shares, crosses = attention.shares_query_key, spec.reads is not None
        projections = self.made(
            PROJECTIONS, spec.projections, shares_query_key=shares, joins_heads=True, crosses=crosses
        )
        if spec.reads is not None:
            return CrossAttention(projections, attention, spec.reads)
        return SelfAttention(projections, attention, spec.is_causal, self.global_rows(spec, attention, projections))

    def global_rows(self, spec: AttentionSpec, attention: CoreAttention, projections: Projections) -> GlobalRows | None:
        if Feature.MARKS not in attention.supports:
            return None
        part, own = spec.global_projections, None
        if part is not None:
            shares = attention.shares_query_key
            own = self.made(PROJECTIONS, part, shares_query_key=shares, joins_heads=False, crosses=False)
            if part != spec.projections:
                raise UserError(
                    "`global_projections` start as copies of `encoder_projections`, so kind and options must be the "
                    f"same, but {_described(part)} is not {_described(spec.projections)}."
                )
            # Training begins as without them (Beltagy et al. 2020, section 3.1 and appendix A).
            own.load_state_dict({name: projections.state_dict()[name] for name in own.state_dict()})
        return GlobalRows(own, self.spec.attention_dropout)

    def attention(self, spec: AttentionSpec, longest: int | None) -> CoreAttention:
        given: dict[str, Any] = {"dropout": self.spec.attention_dropout, "max_length": longest}
        if Feature.DISTANCES in ATTENTION[spec.attention.kind].supports:
            given |= {"distances": self._distances, "position_dropout": self.spec.dropout}
        return self.made(ATTENTION, spec.attention, **given, layer=next(self._numbers))

    @cached_property
    def _distances(self) -> Distances:
        """What all layers share that learn from distances."""
        return Distances(self.spec.embed_dim, self.spec.num_heads)

    def pooler(self, spec: PoolingSpec, longest: int) -> Pooler:
        given: dict[str, Any] = {"k": spec.length, "window": spec.window}
        if spec.scorer is not None:
            given["scorer"] = self.made(SCORER, spec.scorer, stride=spec.window, k=spec.length)
        if spec.layer is not None:
            given["layer"], given["confined_to"] = self.pooling_layer(spec.layer, longest)
        return self.made(POOLING, spec.pooler, **given)

    def pooling_layer(self, spec: LayerSpec, longest: int) -> tuple[Layer, int | None]:
        """Return a layer whose queries read other positions' keys, and the blocks within which they do."""
        functions: dict[str, SublayerFunction] = {}
        confined_to = None
        for sublayer in spec.sublayers:
            function = self.function(sublayer, longest)
            if isinstance(function, SelfAttention):
                confined_to = function.confined_to
                functions["cross_attention"] = CrossAttention(function.projections, function.attention.across())
            else:
                functions[sublayer.name] = function
        return self._layer(spec, functions, confined_to), confined_to

    def language_model(
        self, spec: LanguageModelSpec, embedding: nn.Embedding, padding_idx: int, space_idx: int | None
    ) -> LanguageModel:
        """Make a language model; arguments as in `build_language_model`."""
        return LanguageModel(
            Embedder(embedding, scale=False, dropout=spec.dropout),
            self.hourglass(spec.hourglass, space_idx),
            self.stack(spec.stack),
            self.made(OUTPUT, spec.output),
            self.norm(),
            padding_idx,
        )

    def hourglass(self, spec: HourglassSpec, space_idx: int | None) -> Hourglass:
        before, shortened = [self.layer(layer) for layer in spec.before], None
        if spec.shortened is not None:
            shortened = Shortened(
                self.made(BOUNDARIES, spec.shortened.boundaries, space_idx=space_idx),
                self.made(SEGMENTS, spec.shortened.segments),
                self.hourglass(spec.shortened.inner, space_idx),
                self.spec.embed_dim,
            )
        return Hourglass(before, shortened, [self.layer(layer) for layer in spec.after])


def _described(part: Part) -> str:
    return f"{part.kind!r} {dict(part.options)}" if part.options else repr(part.kind)

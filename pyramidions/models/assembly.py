"""From the specs of parts to modules: the one place that reads both specs and registries."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from typing import Any, TypeVar

from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE, Part, written
from pyramidions.base.registry import Registry
from pyramidions.models.config import PyramidionConfig
from pyramidions.models.fields import FieldReader
from pyramidions.models.parse import stack_of
from pyramidions.models.spec import EncoderSpec, HourglassSpec, LayerSpec, ModelSpec, PoolingSpec, StageSpec
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
from pyramidions.nn.layer import NORMS, Layer, Sublayer
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING, Pooler
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS, Projections
from pyramidions.nn.recurrence import RECURRENCE
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.segment_pooling import SEGMENT_UPSAMPLING, SEGMENTS
from pyramidions.nn.stack import STACK
from pyramidions.nn.stage import Stage
from pyramidions.nn.structure import StructureOf
from pyramidions.nn.sublayer import SublayerFunction
from pyramidions.nn.upsampling import UPSAMPLING

Made = TypeVar("Made")

#: the sublayers of a language model
_CAUSAL = ("self_attention", "feed_forward")
_OFFERED = ("embed_dim", "num_heads", "ffn_embed_dim", "activation_dropout", "normalize_before")


class Assembly:
    """Makes modules of a config, with all fields in their ranges."""

    def __init__(self, config: Any, vocab_size: int) -> None:
        self.config = config
        self.reader = FieldReader(config)
        #: of attention sublayers, in the order in which they are built: those of the encoder's layers come first
        self._numbers = count()
        #: modules of attention that alike layers of an encoder share, and those of a decoder
        self._shared: dict[tuple[bool, str, str], nn.Module] = {}
        #: what every part is offered; a part takes what its constructor names
        self.setting = {
            **{name: getattr(config, name) for name in _OFFERED},
            "head_dim": config.embed_dim // config.num_heads,
            "vocab_size": vocab_size,
        }

    def made(self, registry: Registry[Made], part: Part, **given: Any) -> Made:
        """Return a part, offered the ``given`` besides what every part is."""
        return registry.build(part.kind, part.options, **self.setting, **given)

    def encoder(
        self, spec: EncoderSpec, embedding: nn.Embedding, structure_of: StructureOf, merges: bool = True
    ) -> Encoder:
        """Make an encoder.

        Args:
            spec: of the encoder.
            embedding: of tokens.
            structure_of: finds the structure of texts.
            merges: the streams of the stack are merged and normalised at the end; without, they are handed on. One
                stream is always normalised.
        """
        config, stack = self.config, stack_of(self.reader)
        merges = merges or STACK[stack.kind].streams == 1
        if not merges and spec.stages[-1].pooling is not None:
            raise UserError("`reads_streams` of the decoder needs layers after the last pooling of the encoder.")
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
                up = self.made(UPSAMPLING, upsampler, window=of.pooling.window, norm=self.norm())
            return Stage(layers, pooler, tuple(stage(inner) for inner in of.inner), up, memory)

        return Encoder(
            self.embedder("encoder_positions", embedding, spec.longest, config.tag_dim),
            [stage(of) for of in spec.stages],
            self.made(STACK, stack, opened=False, merges=True),
            structure_of,
            self.norm() if merges else None,
            spec.memories,
            None if merges else self.made(STACK, stack, opened=False, merges=False),
            config.global_vectors,
        )

    def decoder(self, spec: ModelSpec, embedding: nn.Embedding, longest: int, start: int | None) -> Decoder:
        """Make a decoder.

        Args:
            spec: of the model.
            embedding: of tokens.
            longest: tokens of the longest summary.
            start: as in `Decoder`.
        """
        kind, memory_length = DECODER[spec.decoder.kind], spec.encoder.handed_on
        names = kind.sublayers_with(spec.decoder.options)
        reads = memory_length + longest if kind.joins else longest
        return self.made(
            DECODER,
            spec.decoder,
            embedder=self.embedder("decoder_positions", embedding, longest),
            layers=[self.layer(layer, reads, names) for layer in spec.layers],
            stack=self.made(STACK, stack_of(self.reader), opened=spec.reads_streams, merges=True),
            output=self.made(OUTPUT, self.reader.one("output")),
            norm=self.norm(),
            start=start,
            memory_length=memory_length,
        )

    def embedder(self, positions: str, embedding: nn.Embedding, longest: int, tag_dim: int = 0) -> Embedder:
        """Make an embedder whose positions the field ``positions`` describes."""
        config, part = self.config, self.reader.one_or_none(positions)
        return Embedder(
            embedding,
            None if part is None else self.made(POSITIONS, part, max_length=longest),
            self.new_norm(config.embed_dim) if config.layernorm_embedding else None,
            not config.no_scale_embedding,
            config.dropout,
            TagEmbeddings(config.embed_dim, tag_dim) if tag_dim else None,
        )

    def norm(self) -> nn.Module | None:
        """Return the norm of the last layer's output, which pre-norm models have."""
        return self.new_norm(self.config.embed_dim) if self.config.normalize_before else None

    @cached_property
    def new_norm(self) -> Callable[[int], nn.Module]:
        """What makes a norm; a language model has the usual ones."""
        return NORMS[getattr(self.config, "norm", "layer")]

    def layer(self, spec: LayerSpec, longest: int | None = None, names: Sequence[str] = ()) -> Layer:
        """Make a layer with sublayers of these ``names``; without any, a layer of an encoder."""
        functions: dict[str, SublayerFunction] = {}
        of_encoder = ("self_attention", *(["cross_attention"] if spec.cross_attention else []), "feed_forward")
        for name in names or of_encoder:
            if name == "cross_attention":
                for number, part in enumerate(spec.cross_attention):
                    functions[f"{name}_{number + 1}" if number else name] = self.cross_attention(part, number, longest)
            elif name == "feed_forward":
                functions[name] = self.made(FEED_FORWARD, spec.feed_forward)
            else:
                functions[name] = self.self_attention(spec.attention, longest, is_causal=bool(names))
        return self.joined(spec, functions)

    def joined(self, spec: LayerSpec, functions: dict[str, SublayerFunction], confined_to: int | None = None) -> Layer:
        """Make a layer of functions; a recurrence stays in the blocks of its attention, or those given."""
        config = self.config
        own = (one.confined_to for one in functions.values() if isinstance(one, SelfAttention))
        beside = None
        if spec.recurrence is not None:
            beside = self.made(RECURRENCE, spec.recurrence, confined_to=next(own, confined_to))
        around = (config.embed_dim, config.dropout, config.normalize_before)

        def sublayer(name: str, one: SublayerFunction) -> Sublayer:
            of_encoder = isinstance(one, SelfAttention) and not one.is_causal
            apart = config.global_vectors if of_encoder else 0
            return Sublayer(one, *around, beside if name == "feed_forward" else None, self.new_norm, apart)

        return Layer({name: sublayer(name, one) for name, one in functions.items()})

    def self_attention(self, part: Part, longest: int | None, is_causal: bool) -> SelfAttention:
        """Make attention of an encoder, or causal attention, with its projections."""
        attention = self.attention(part, longest)
        for name in attention.shared:
            own = getattr(attention, name)
            setattr(attention, name, self._shared.setdefault((is_causal, written(part), name), own))
        field = "decoder_projections" if is_causal else "encoder_projections"
        projected = self.projections(field, attention)
        rows = None if is_causal else self.global_rows(attention, projected)
        if not is_causal and self.config.global_vectors and projected.look_back:
            raise UserError(
                "`encoder_projections` must read each position alone with `global_vectors`, but read "
                f"{projected.look_back} before it."
            )
        return SelfAttention(projected, attention, is_causal, rows)

    def cross_attention(self, part: Part, number: int, longest: int | None) -> CrossAttention:
        """Make attention to the memory of a number."""
        attention = self.attention(part, longest)
        return CrossAttention(self.projections("cross_projections", attention), attention, number)

    def projections(self, field: str, attention: CoreAttention, joins_heads: bool = True) -> Projections:
        """Make the projections that a field describes; a language model has the usual ones."""
        known = hasattr(self.config, field)
        part = self.reader.one(field) if known else Part(getattr(PyramidionConfig, field))
        if part.options.get("inner_dim") and Feature.DISTANCES in attention.supports:
            raise UserError(
                f"`{field}` must have no `inner_dim` for attention that learns from distances (relative), but has "
                f"{part.options['inner_dim']}."
            )
        given = {"shares_query_key": attention.shares_query_key, "crosses": field == "cross_projections"}
        return self.made(PROJECTIONS, part, joins_heads=joins_heads, **given)

    def global_rows(self, attention: CoreAttention, projections: Projections) -> GlobalRows | None:
        """Make what global tokens see, if the attention knows any."""
        if Feature.MARKS not in attention.supports:
            return None
        part, usual, own = (*(self.reader.one(f"{side}_projections") for side in ("global", "encoder")), None)
        if part.kind != NONE:
            own = self.projections("global_projections", attention, joins_heads=False)
            if part != usual:
                raise UserError(
                    "`global_projections` start as copies of `encoder_projections`, so kind and options must be the "
                    f"same, but {_described(part)} is not {_described(usual)}."
                )
            # Training begins as without them (Beltagy et al. 2020, section 3.1 and appendix A).
            own.load_state_dict({name: projections.state_dict()[name] for name in own.state_dict()})
        return GlobalRows(own, self.config.attention_dropout)

    def attention(self, part: Part, longest: int | None) -> CoreAttention:
        """Make a kind of attention that reads so many positions at most."""
        given: dict[str, Any] = {"dropout": self.config.attention_dropout, "max_length": longest}
        if Feature.DISTANCES in ATTENTION[part.kind].supports:
            given |= {"distances": self._distances, "position_dropout": self.config.dropout}
        return self.made(ATTENTION, part, **given, layer=next(self._numbers))

    @cached_property
    def _distances(self) -> Distances:
        """What all layers share that learn from distances."""
        return Distances(self.config.embed_dim, self.config.num_heads)

    def pooler(self, spec: PoolingSpec, longest: int) -> Pooler:
        given: dict[str, Any] = {"k": spec.length, "window": spec.window}
        if spec.scorer is not None:
            given["scorer"] = self.made(SCORER, spec.scorer, stride=spec.window, k=spec.length)
        if spec.layer is not None:
            given["layer"], given["confined_to"] = self.pooling_layer(spec.layer, longest)
        return self.made(POOLING, spec.pooler, **given)

    def pooling_layer(self, spec: LayerSpec, longest: int) -> tuple[Layer, int | None]:
        """Return a layer whose queries read other positions' keys, and the blocks within which they do."""
        own = self.self_attention(spec.attention, longest, is_causal=False)
        functions = {
            "cross_attention": CrossAttention(own.projections, own.attention.across()),
            "feed_forward": self.made(FEED_FORWARD, spec.feed_forward),
        }
        return self.joined(spec, functions, own.confined_to), own.confined_to

    def language_model(
        self, spec: HourglassSpec, embedding: nn.Embedding, padding_idx: int, space_idx: int | None
    ) -> LanguageModel:
        """Make a language model of these layers; further arguments as in `build_language_model`."""
        return LanguageModel(
            Embedder(embedding, scale=False, dropout=self.config.dropout),
            self.hourglass(spec, space_idx),
            self.made(STACK, stack_of(self.reader), opened=False, merges=True),
            self.made(OUTPUT, self.reader.one("output")),
            self.norm(),
            padding_idx,
        )

    def hourglass(self, spec: HourglassSpec, space_idx: int | None) -> Hourglass:
        """Make the layers before and after the shortened part, and that part."""
        before, shortened = [self.layer(layer, names=_CAUSAL) for layer in spec.before], None
        if spec.shortened is not None:
            shortened = Shortened(
                self.made(BOUNDARIES, spec.shortened.boundaries, space_idx=space_idx),
                self.made(SEGMENTS, spec.shortened.segments),
                self.hourglass(spec.shortened.inner, space_idx),
                self.made(SEGMENT_UPSAMPLING, spec.shortened.upsampling),
                self.config.embed_dim,
            )
        return Hourglass(before, shortened, [self.layer(layer, names=_CAUSAL) for layer in spec.after])


def _described(part: Part) -> str:
    return f"{part.kind!r} {dict(part.options)}" if part.options else repr(part.kind)

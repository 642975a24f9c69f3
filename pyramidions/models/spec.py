"""What a model is made of, typed and frozen: `parse` reads it from a flat config, `assembly` makes modules of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyramidions.base.notation import Part
from pyramidions.nn.attention import ATTENTION, Feature
from pyramidions.nn.pooling import POOLING, Pooler
from pyramidions.nn.scorer import SCORER


@dataclass(frozen=True)
class LayerSpec:
    """The parts of a layer."""

    attention: Part  # by which it reads its own sequence
    feed_forward: Part  # transforms each position
    recurrence: Part | None = None  # beside the feed-forward part, or None
    # by which it reads each memory; in an encoder, what was pooled before an upsampling
    cross_attention: tuple[Part, ...] = ()

    def supports(self, feature: Feature) -> bool:
        """Return whether the attention supports a feature."""
        return feature in ATTENTION[self.attention.kind].supports


@dataclass(frozen=True)
class PoolingSpec:
    """What follows the layers of a stage."""

    pooler: Part  # the kind of pooling
    length: int  # representations that it hands on at most, K
    window: int  # positions that one of them stands for, if the kind pools at a fixed ratio
    scorer: Part | None = None  # rates representations; None if the kind takes no scorer
    layer: LayerSpec | None = None  # owned by the pooler; None if the kind owns none
    upsampler: Part | None = None  # brings the output of the inner stages back to the length before, or None

    @property
    def kind(self) -> type[Pooler]:
        """The kind of pooling."""
        return POOLING[self.pooler.kind]

    @property
    def reads_query(self) -> bool:
        """Whether the scorer reads the query."""
        return self.scorer is not None and SCORER[self.scorer.kind].reads_query


@dataclass(frozen=True)
class StageSpec:
    """Layers, the pooling after them, and with upsampling the stages in between."""

    layers: tuple[LayerSpec, ...]  # in order
    longest: int  # positions that the first of them reads at most
    pooling: PoolingSpec | None = None  # what follows, or None
    inner: tuple["StageSpec", ...] = ()  # stages between pooling and upsampling
    is_memory: bool = False  # the decoder reads what the layers hand on

    def all_stages(self) -> "Iterator[StageSpec]":
        """Yield this stage and all within it, in the order in which their layers run."""
        yield self
        for stage in self.inner:
            yield from stage.all_stages()


@dataclass(frozen=True)
class EncoderSpec:
    """Stages of an encoder."""

    stages: tuple[StageSpec, ...]  # run one after the other
    # what the decoder reads, in that order: by its number (from 0) the output of a stage that is a memory, or None for
    # that of the last layer
    memories: tuple[int | None, ...] = (None,)

    def all_stages(self) -> Iterator[StageSpec]:
        """Yield all stages, inner ones too, in the order in which their layers run."""
        for stage in self.stages:
            yield from stage.all_stages()

    @property
    def layers(self) -> Iterator[LayerSpec]:
        """All layers, in the order in which they run, but those that poolings own."""
        return (layer for stage in self.all_stages() for layer in stage.layers)

    @property
    def longest(self) -> int:
        """Tokens of the longest document."""
        return self.stages[0].longest

    @property
    def reads_query(self) -> bool:
        """Whether a scorer reads the query."""
        return any(pooling.reads_query for pooling in self.poolings.values())

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
class ExtractorSpec:
    """A model that only reads, and what selects by its vectors."""

    encoder: EncoderSpec
    selector: Part


@dataclass(frozen=True)
class ModelSpec:
    """A model that reads and writes: a kind of decoder, and its layers."""

    encoder: EncoderSpec
    decoder: Part
    layers: tuple[LayerSpec, ...]

    @property
    def reads_streams(self) -> bool:
        """Whether both streams of the encoder's stack go on in the decoder's."""
        return self.decoder.options.get("reads_streams") is True


@dataclass(frozen=True)
class ShortenedSpec:
    """An hourglass over segments."""

    boundaries: Part  # mark where segments end
    segments: Part  # make one vector of each
    inner: "HourglassSpec"  # reads them
    upsampling: Part  # brings them back to positions


@dataclass(frozen=True)
class HourglassSpec:
    """Layers, a shortened part or None, and layers again."""

    before: tuple[LayerSpec, ...]
    shortened: ShortenedSpec | None = None
    after: tuple[LayerSpec, ...] = ()

"""What runs on how many positions: the course of a document through a model, without running it."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import torch

from pyramidions.errors import UserError
from pyramidions.measure.kinds import POOLING_FORMS, closed_form
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.parse import spec_of
from pyramidions.models.spec import AttentionSpec
from pyramidions.nn import Encoder, Transformer
from pyramidions.nn.layer import Layer
from pyramidions.nn.pooling import FunnelPooler, Pooler


class Part(StrEnum):
    """What a model spends its multiplications and its memory on."""

    EMBEDDING_AND_NORMS = "embeddings, residuals, norms"
    ENCODER_ATTENTION = "encoder self-attention"
    ENCODER_PROJECTIONS = "encoder projections"
    ENCODER_FEED_FORWARD = "encoder feed-forward"
    POOLING = "scoring and pooling"
    DECODER_ATTENTION = "decoder self-attention"
    CROSS_ATTENTION = "cross-attention"
    DECODER_PROJECTIONS = "decoder projections"
    MEMORY_PROJECTIONS = "projections of the memory"
    DECODER_FEED_FORWARD = "decoder feed-forward"
    OUTPUT = "output layer"


#: what the decoder does, the projections of the memory to keys and values included
DECODER = (
    Part.DECODER_ATTENTION,
    Part.CROSS_ATTENTION,
    Part.DECODER_PROJECTIONS,
    Part.MEMORY_PROJECTIONS,
    Part.DECODER_FEED_FORWARD,
    Part.OUTPUT,
)


class Lengths(NamedTuple):
    """A batch of full-length documents and their summaries.

    Attributes:
        source: L, tokens of each document.
        target: T, tokens of each summary.
        batch: B.
        vocab_size: V.
    """

    source: int = 8192
    target: int = 512
    batch: int = 1
    vocab_size: int = 32768

    def check(self) -> None:
        """Raise UserError where one is below 1."""
        for name, value in self._asdict().items():
            if value < 1:
                raise UserError(f"`{name}` must be at least 1, but is {value}.")


class LayerRun(NamedTuple):
    """An encoder layer on one document.

    Attributes:
        kind: of its self-attention.
        layer: the layer.
        blocks: sequences that it runs on, N; 1 where attention is not confined to blocks.
        queries: positions of each that attend, padding up to the block included.
        keys: positions of each that are attended to; as many, but for Funnel's pooled queries.
        padded: whether some of them are padding, up to the block.
    """

    kind: str
    layer: Layer
    blocks: int
    queries: int
    keys: int
    padded: bool


class PoolerRun(NamedTuple):
    """A pooler on one document.

    Attributes:
        pooler: the pooler.
        before: the layer before it.
        length: positions that it receives, L.
        pooled: positions that it hands on, K.
    """

    pooler: Pooler
    before: LayerRun
    length: int
    pooled: int


def outline(config: PyramidionConfig, vocab_size: int) -> Transformer:
    """Return a model without any memory for its weights.

    Raises:
        UserError: as `build`.
    """
    with torch.device("meta"):
        return build(config, vocab_size)


def encoder_runs(config: PyramidionConfig, encoder: Encoder, length: int) -> Iterator[LayerRun | PoolerRun]:
    """Yield what runs in the encoder on a document of ``length`` tokens, in order."""
    stages = zip(spec_of(config).encoder.all_stages(), encoder.all_stages(), strict=True)
    for spec, stage in stages:
        for of, layer in zip(spec.layers, stage.layers, strict=True):
            blocks, size = _cut(length, layer.confined_to)
            attention = of.sublayers[0]
            assert isinstance(attention, AttentionSpec)
            run = LayerRun(attention.attention.kind, layer, blocks, size, size, blocks * size > length)
            yield run
        if spec.pooling is not None:
            pooler = stage.pooler
            assert pooler is not None
            form = closed_form(POOLING_FORMS, spec.pooling.pooler.kind, "pooling")
            pooled = form.hands_on(pooler, spec.pooling.length, length)
            yield PoolerRun(pooler, run, length, pooled)
            if isinstance(pooler, FunnelPooler):
                blocks, keys = _cut(length, pooler.confined_to)
                padded = blocks * keys > length
                yield LayerRun("full", pooler.layer, blocks, -(-keys // pooler.window), keys, padded)
            length = pooled


def memory_length(encoder: Encoder, runs: list[LayerRun | PoolerRun], length: int) -> int:
    """Return how many positions the decoder reads of a document of ``length`` tokens."""
    pooled = [run for run in runs if isinstance(run, PoolerRun)]
    if not pooled:
        return length
    return pooled[-1].length if encoder.upsamplers else pooled[-1].pooled


def _cut(length: int, block_size: int | None) -> tuple[int, int]:
    """Return how many blocks a document is cut into, and the positions in each."""
    size = length if block_size is None else min(block_size, length)
    return -(-length // size), size

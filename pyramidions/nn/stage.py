"""A stage: layers, a pooler, and inner stages that run on its output."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.attention import SelfAttention
from pyramidions.nn.block_layout import BlockLayout
from pyramidions.nn.layer import Layer
from pyramidions.nn.marks import Marks
from pyramidions.nn.pooling import Pooled, Pooler
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.nn.stack import Stack
from pyramidions.nn.sublayer import NOBODY, LayerContext, Watcher
from pyramidions.nn.units import Units
from pyramidions.nn.upsampling import Upsampler


class Passed(NamedTuple):
    """What a stage returns."""

    sequence: Sequence  # its output
    poolings: list[Pooled]  # the output of each pooler in it, in their order
    memories: list[Sequence]  # in the order in which layers made them


class Stage:
    """Runs layers, then a pooler; with an upsampler, inner stages run in between (an hourglass).

    A stage says in which order modules run, and owns none of them. So the names of weights do not depend on where
    poolings are, and a model with pooling can start from the weights of one without.

    Args:
        layers, pooler, inner, upsampler: in this order; all but the layers may be left out.
        memory: makes a memory of what the layers hand on (a norm, in pre-norm models); None if no decoder reads it.
    """

    def __init__(
        self,
        layers: list[Layer],
        pooler: Pooler | None = None,
        inner: "tuple[Stage, ...]" = (),
        upsampler: Upsampler | None = None,
        memory: nn.Module | None = None,
    ) -> None:
        self.layers = layers
        self.pooler = pooler
        self.inner = inner
        self.upsampler = upsampler
        self.memory = memory

    def all_stages(self) -> "Iterator[Stage]":
        """Yield this stage and all within it, in the order in which their layers run."""
        yield self
        for stage in self.inner:
            yield from stage.all_stages()

    def __call__(self, sequence: Sequence, stack: Stack) -> Passed:
        """Run the stage; ``stack`` composes the layers."""
        context = PoolingContext(_cannot_be_received)
        for confined_to, layers in self._passes(stack):
            sequence, context = self._run(layers, confined_to, sequence, stack)
        memories = [] if self.memory is None else [sequence._replace(x=self.memory(sequence.x))]
        if self.pooler is None:
            return Passed(sequence, [], memories)
        unpooled = sequence
        pooled: Pooled = self.pooler(unpooled, context)
        lengths = pooled.lengths or _kept(self.pooler, unpooled.lengths)
        sequence = pooled.sequence(unpooled, lengths)
        poolings = [pooled]
        for stage in self.inner:
            passed = stage(sequence, stack)
            sequence, poolings, memories = passed.sequence, poolings + passed.poolings, memories + passed.memories
        if self.upsampler is not None:
            sequence = self.upsampler(sequence, unpooled)._replace(global_vectors=sequence.global_vectors)
        return Passed(sequence, poolings, memories)

    def _passes(self, stack: Stack) -> list[tuple[int | None, list[Layer]]]:
        """Return layers that run together, with the blocks that confine their attention."""
        groups = groupby(self.layers, key=lambda layer: layer.confined_to)
        passes = [(confined_to, list(layers)) for confined_to, layers in groups]
        # Blocks of different sizes are then left to the layers.
        return [(None, self.layers)] if stack.streams > 1 and len(passes) > 1 else passes

    def _run(
        self, layers: list[Layer], confined_to: int | None, sequence: Sequence, stack: Stack
    ) -> tuple[Sequence, PoolingContext]:
        """Run layers whose attention is confined to the same blocks; blocks of pure padding are left out."""
        memories = () if sequence.above is None else (sequence.above,)
        if memories:
            # The vectors of a document share a memory, its blocks would not.
            confined_to = None
        layout = BlockLayout(sequence.padding_mask, confined_to, sequence.lengths)
        attention = None if self.pooler is None else layers[-1].function(SelfAttention)
        # The input of the last attention: the pooler may ask how much attention each position received.
        read: list[Tensor] = []
        watchers: Mapping[nn.Module, Watcher] = NOBODY if attention is None else {attention: read.append}
        marks = None if sequence.marks is None else sequence.marks.packed(layout.pack)
        # Blocks cut units, but no attention that stays inside blocks reads units.
        units = None if sequence.unit is None or confined_to is not None else Units(sequence.unit)
        key_bias = None if sequence.key_bias is None else layout.pack(sequence.key_bias)
        context = LayerContext(layout.attention_mask, memories, watchers, marks, units, key_bias=key_bias)
        x, length = layout.pack(sequence.x), sequence.x.size(1)
        if sequence.global_vectors is not None:
            x, context = _appended(x, sequence.global_vectors, sequence.padding_mask, context)
        x = stack(layers, x, context)

        def received() -> Tensor:
            if attention is None:
                return _cannot_be_received()
            return layout.unpack(attention.received(read[0], context))[:, :length]

        if sequence.global_vectors is not None:
            x, global_vectors = x.split([length, x.size(1) - length], dim=1)
            sequence = sequence._replace(global_vectors=global_vectors)
        return sequence._replace(x=layout.unpack(x)), PoolingContext(received)


def _appended(
    x: Tensor, global_vectors: Tensor, padding_mask: Tensor, context: LayerContext
) -> tuple[Tensor, LayerContext]:
    """Put global vectors behind documents: (B, L, D) -> (B, L + G, D), and the context of both."""
    count = global_vectors.size(1)
    marks = Marks.with_appended(context.marks, padding_mask, count)
    mask = None if context.padding_mask is None else F.pad(context.padding_mask, (0, count), value=False)
    return torch.cat([x, global_vectors.to(x.dtype)], dim=1), context._replace(padding_mask=mask, marks=marks)


def _cannot_be_received() -> Tensor:
    raise ValueError("The scorer reads how much attention a position received, but no self-attention comes before it.")


def _kept(pooler: Pooler, lengths: list[int] | None) -> list[int] | None:
    kept = [None] if lengths is None else [pooler.kept(length) for length in lengths]
    known = [length for length in kept if length is not None]
    return known if len(known) == len(kept) else None

"""The encoder: an embedder and stages."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import SelfAttention
from pyramidions.nn.block_layout import lengths_of
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.layer import Layer
from pyramidions.nn.marks import Marking
from pyramidions.nn.pooling import Pooled
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.stack import Stack
from pyramidions.nn.stage import Stage


class Encoded(NamedTuple):
    """What the decoder reads.

    Attributes:
        memory: (B, K, D).
        padding_mask: (B, K), True at padding.
        pooled: the output of each pooler, by the number of the layer before it (from 0).
        attention_mask: `padding_mask`, or None if there is known to be no padding: attention without a mask is faster.
        sequence: the memory with what else is known about its vectors.
    """

    memory: Tensor
    padding_mask: Tensor
    pooled: dict[int, Pooled]
    attention_mask: Tensor | None
    sequence: Sequence


class Encoder(nn.Module):
    """Embeds tokens, and runs stages, which pool (Pietruszka et al. 2022, section 3.1).

    Args:
        embedder: of tokens and positions.
        stages: run one after the other.
        stack: composes their layers.
        norm: normalises the output (pre-norm models), or None.
        marker_idx: the token at which a unit of the text starts, or None if the vocabulary has none.
        marking: which tokens are global, or None.
    """

    def __init__(
        self,
        embedder: Embedder,
        stages: list[Stage],
        stack: Stack,
        norm: nn.LayerNorm | None = None,
        marker_idx: int | None = None,
        marking: Marking | None = None,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.stages = stages
        self.layers = nn.ModuleList(layer for stage in self.all_stages() for layer in stage.layers)
        #: what follows the layer of that number (from 0)
        self.poolers = nn.ModuleDict()
        self.upsamplers = nn.ModuleDict()
        run = 0
        for stage in self.all_stages():
            run += len(stage.layers)
            for parts, part in ((self.poolers, stage.pooler), (self.upsamplers, stage.upsampler)):
                if part is not None:
                    parts[str(run - 1)] = part
        self.stack = stack
        self.norm = norm
        self.marker_idx = marker_idx
        self.marking = marking or Marking()

    def all_stages(self) -> list[Stage]:
        """Return all stages, inner ones too, in the order in which their layers run."""
        return [inner for stage in self.stages for inner in stage.all_stages()]

    def forward(
        self,
        tokens: Tensor,
        padding_mask: Tensor,
        lengths: list[int] | None = None,
        marked: Tensor | None = None,
    ) -> Encoded:
        """Encode a batch.

        Args:
            tokens: (B, L).
            padding_mask: (B, L), True at padding.
            lengths: number of real tokens of each document, B integers, if all padding is on the right. With None they
                are read from the mask, for which the host waits for a GPU.
            marked: (B, L), True at tokens that are global beside those of ``marking``; or None.

        Raises:
            ValueError: tokens are marked, but no layer reads marks.
        """
        if marked is not None and not any(_reads_marks(layer) for stage in self.all_stages() for layer in stage.layers):
            raise ValueError("`marked` needs attention that reads marks, but no layer has one.")
        lengths = lengths_of(padding_mask) if lengths is None else lengths
        position = torch.arange(tokens.size(1), device=tokens.device).expand(tokens.shape)
        units, marks = self.units(tokens, padding_mask), self.marking(tokens, padding_mask, marked)
        sequence = Sequence(self.embedder(tokens), padding_mask, position, lengths, units, marks)
        poolings: list[Pooled] = []
        for stage in self.stages:
            sequence, further = stage(sequence, self.stack)
            poolings += further
        x = sequence.x if self.norm is None else self.norm(sequence.x)
        pooled = dict(zip(map(int, self.poolers), poolings, strict=True))
        return Encoded(x, sequence.padding_mask, pooled, sequence.attention_mask, sequence._replace(x=x))

    def units(self, tokens: Tensor, padding_mask: Tensor) -> Tensor | None:
        """Return the number of the unit that each token stands in, -1 at padding: (B, L).

        A unit starts with its document, and at each marker. None for an encoder without a marker.
        """
        if self.marker_idx is None:
            return None
        real = ~padding_mask
        starts = tokens.eq(self.marker_idx) | (real.cumsum(dim=1) == 1)
        return ((starts & real).cumsum(dim=1) - 1).masked_fill(padding_mask, -1)


def _reads_marks(layer: Layer) -> bool:
    attention = layer.function(SelfAttention)
    return attention is not None and attention.global_rows is not None

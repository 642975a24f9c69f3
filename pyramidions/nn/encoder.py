"""The encoder: stacks of layers with poolers in between."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from pyramidions.nn.context import Context
from pyramidions.nn.encoder_layer import EncoderLayer
from pyramidions.nn.functional.chunking import BlockLayout, lengths_of
from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.pooling import Pooled, Pooler, Upsampler
from pyramidions.nn.position import SinusoidalPositions
from pyramidions.nn.residual import ResidualStack


class Encoded(NamedTuple):
    """What the decoder reads.

    Attributes:
        memory: (B, K, D).
        padding_mask: (B, K), True at padding.
        pooled: what each pooler handed on, by the number of the layer before it (from 0).
        lengths: of the memory, B numbers, where padding comes after all that is real; None if unknown.
    """

    memory: Tensor
    padding_mask: Tensor
    pooled: dict[int, Pooled]
    lengths: Sequence[int] | None = None

    @property
    def attention_mask(self) -> Tensor | None:
        """`padding_mask`, or None where nothing is known to be padding: attention without a mask is faster."""
        full = self.lengths is not None and sum(self.lengths) == self.padding_mask.numel()
        return None if full else self.padding_mask


class Encoder(nn.Module):
    """Embeds tokens, runs layers, and pools where a pooler stands (Pietruszka et al. 2022, section 3.1).

    Args:
        embedding: token embeddings, (V, D).
        positions: position embeddings, or None.
        layers: all layers.
        poolers: what follows the layer of that number (from 0).
        residual: runs the layers between two poolings.
        upsampler: brings the output back to the length before the last pooling, or None.
        norm: normalises the output (pre-norm models), or None.
        dropout: probability of dropping a value of the embedded input while training.
        confined_to: attention stays within blocks of this many positions; None where it does not.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        positions: SinusoidalPositions | None,
        layers: list[EncoderLayer],
        poolers: Mapping[int, Pooler],
        residual: ResidualStack,
        upsampler: Upsampler | None = None,
        norm: nn.LayerNorm | None = None,
        dropout: float = 0.0,
        confined_to: int | None = None,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.layers = nn.ModuleList(layers)
        self.poolers = nn.ModuleDict({str(layer): pooler for layer, pooler in poolers.items()})
        self.residual = residual
        self.upsampler = upsampler
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.confined_to = confined_to

    def embed(self, tokens: Tensor, position: Tensor, length: int) -> Tensor:
        """Embed ``tokens`` (B, L) at ``position`` (B, L), all below ``length``: (B, L, D)."""
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        if self.positions is not None:
            x = x + self.positions(position, length).to(x.dtype)
        return self.dropout(x)

    def stages(self) -> Iterator[tuple[nn.ModuleList, int]]:
        """Yield the layers up to each pooler (or to the end), and the number of the last of them."""
        start = 0
        for last in range(len(self.layers)):
            if str(last) in self.poolers or last == len(self.layers) - 1:
                yield self.layers[start : last + 1], last
                start = last + 1

    def forward(self, tokens: Tensor, padding_mask: Tensor, lengths: Sequence[int] | None = None) -> Encoded:
        """Encode a batch.

        Layers run on blocks that hold a real token, wherever attention stays within blocks.

        Args:
            tokens: (B, L).
            padding_mask: (B, L), True at padding.
            lengths: real tokens of each document, B numbers, where padding comes after all of them; None asks the mask,
                so that the host waits for a GPU.
        """
        batch, length = tokens.shape
        lengths = lengths_of(padding_mask) if lengths is None else lengths
        position = torch.arange(length, device=tokens.device).expand(batch, length)
        layout = BlockLayout(padding_mask, self.confined_to, lengths)
        x = self.embed(layout.pack(tokens), layout.pack(position), length)
        pooled: dict[int, Pooled] = {}
        unpooled = x, padding_mask, lengths
        for layers, last in self.stages():
            entering = self.residual(layers[:-1], x, layout.attention_mask)
            x = layout.unpack(self.residual(layers[-1:], entering, layout.attention_mask))
            if str(last) in self.poolers:
                pooler = cast(Pooler, self.poolers[str(last)])
                context = Context(partial(_received, self.layers[last], entering, layout), lengths)
                unpooled = x, padding_mask, lengths
                pooled[last] = pooler(x, padding_mask, context)
                x, padding_mask = pooled[last].x, pooled[last].padding_mask
                lengths = _kept(pooler, lengths)
            if last < len(self.layers) - 1:
                layout = BlockLayout(padding_mask, self.confined_to, lengths)
                x = layout.pack(x)
        if self.upsampler is not None:
            *before, lengths = unpooled
            x, padding_mask = self.upsampler(x, *before)
        return Encoded(x if self.norm is None else self.norm(x), padding_mask, pooled, lengths)


def _kept(pooler: Pooler, lengths: Sequence[int] | None) -> list[int] | None:
    kept = [None] if lengths is None else [pooler.kept(length) for length in lengths]
    known = [length for length in kept if length is not None]
    return known if len(known) == len(kept) else None


def _received(layer: nn.Module, entering: Tensor, layout: BlockLayout) -> Tensor:
    assert isinstance(layer, EncoderLayer)
    return layout.unpack(layer.received(entering, layout.attention_mask))

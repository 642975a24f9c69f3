"""The encoder: stacks of layers with poolers in between."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import MultiheadAttention
from pyramidions.nn.context import Context
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.functional.chunking import BlockLayout
from pyramidions.nn.pooling import Pooled, Pooler
from pyramidions.nn.position import SinusoidalPositions
from pyramidions.nn.residual import ResidualConnection, ResidualStack


class Encoded(NamedTuple):
    """What the decoder reads.

    Attributes:
        memory: (B, K, D).
        padding_mask: (B, K), True at padding.
        pooled: what each pooler handed on, by the number of the layer before it (from 0).
    """

    memory: Tensor
    padding_mask: Tensor
    pooled: dict[int, Pooled]


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward part.

    Args:
        attention: self-attention.
        feed_forward: what follows it.
        around_attention: its residual connection.
        around_feed_forward: likewise.
    """

    def __init__(
        self,
        attention: MultiheadAttention,
        feed_forward: FeedForward,
        around_attention: ResidualConnection,
        around_feed_forward: ResidualConnection,
    ) -> None:
        super().__init__()
        self.self_attention = attention
        self.feed_forward = feed_forward
        self.around_attention = around_attention
        self.around_feed_forward = around_feed_forward

    def forward(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        """(B, L, D), (B, L) -> (B, L, D)."""
        x = self.around_attention(x, lambda y: self.self_attention(y, padding_mask))
        return self.around_feed_forward(x, self.feed_forward)

    @torch.no_grad()
    def received(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Return how much attention each position of the layer's input ``x`` (B, L, D) receives in it: (B, L)."""
        return self.self_attention.received(self.around_attention.entering(x), padding_mask)


class Encoder(nn.Module):
    """Embeds tokens, runs layers, and pools where a pooler stands (Pietruszka et al. 2022, section 3.1).

    Args:
        embedding: token embeddings, (V, D).
        positions: position embeddings, or None.
        layers: all layers.
        poolers: what follows the layer of that number (from 0).
        residual: runs the layers between two poolings.
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
        self.norm = norm
        self.dropout = nn.Dropout(dropout)
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

    def forward(self, tokens: Tensor, padding_mask: Tensor) -> Encoded:
        """Encode a batch.

        Layers run on blocks that hold a real token, wherever attention stays within blocks.

        Args:
            tokens: (B, L).
            padding_mask: (B, L), True at padding.
        """
        batch, length = tokens.shape
        position = torch.arange(length, device=tokens.device).expand(batch, length)
        layout = BlockLayout(padding_mask, self.confined_to)
        x = self.embed(layout.pack(tokens), layout.pack(position), length)
        pooled: dict[int, Pooled] = {}
        for layers, last in self.stages():
            entering = self.residual(layers[:-1], x, layout.padding_mask)
            x = layout.unpack(self.residual(layers[-1:], entering, layout.padding_mask))
            if str(last) in self.poolers:
                context = Context(partial(_received, self.layers[last], entering, layout))
                pooled[last] = self.poolers[str(last)](x, padding_mask, context)
                x, padding_mask = pooled[last].x, pooled[last].padding_mask
            if last < len(self.layers) - 1:
                layout = BlockLayout(padding_mask, self.confined_to)
                x = layout.pack(x)
        return Encoded(x if self.norm is None else self.norm(x), padding_mask, pooled)


def _received(layer: nn.Module, entering: Tensor, layout: BlockLayout) -> Tensor:
    assert isinstance(layer, EncoderLayer)
    return layout.unpack(layer.received(entering, layout.padding_mask))

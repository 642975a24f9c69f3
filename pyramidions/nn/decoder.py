"""The decoder: causal self-attention, cross-attention to the pooled memory, and K/V caches."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.attention import KeyValueCache, MultiheadAttention
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.position import SinusoidalPositions
from pyramidions.nn.residual import ResidualConnection


class LayerCache:
    """What one decoder layer keeps between steps: its past, and the projected memory."""

    def __init__(self) -> None:
        self.past = KeyValueCache()
        self.memory = KeyValueCache()


class DecoderCache:
    """What a decoder keeps between steps of incremental decoding.

    The past has a row per hypothesis, the projected memory one per document: hypotheses of a document, which stand
    together, share it, so that it is computed once and not copied when they change.
    """

    def __init__(self, layers: int) -> None:
        self.layers = [LayerCache() for _ in range(layers)]

    @property
    def length(self) -> int:
        """Target positions already decoded."""
        return self.layers[0].past.length

    @property
    def documents(self) -> int:
        """Documents whose memory is held; 0 where nothing was decoded yet."""
        memory = self.layers[0].memory.k
        return 0 if memory is None else memory.size(0)

    @property
    def hypotheses(self) -> int:
        """Rows of the past."""
        past = self.layers[0].past.k
        return 0 if past is None else past.size(0)

    def reorder(self, order: Tensor, documents: Tensor | None = None) -> None:
        """Keep the hypotheses ``order`` (B'W',) of the documents ``documents`` (B',), in that order; None keeps all."""
        for layer in self.layers:
            layer.past.reorder(order)
            if documents is not None:
                layer.memory.reorder(documents)


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention and a feed-forward part.

    Args:
        self_attention: among target positions.
        cross_attention: from target positions to the memory.
        feed_forward: what follows.
        around_self_attention: its residual connection.
        around_cross_attention: likewise.
        around_feed_forward: likewise.
    """

    def __init__(
        self,
        self_attention: MultiheadAttention,
        cross_attention: MultiheadAttention,
        feed_forward: FeedForward,
        around_self_attention: ResidualConnection,
        around_cross_attention: ResidualConnection,
        around_feed_forward: ResidualConnection,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_self_attention = around_self_attention
        self.around_cross_attention = around_cross_attention
        self.around_feed_forward = around_feed_forward

    def forward(
        self, x: Tensor, memory: Tensor, memory_padding_mask: Tensor | None, cache: LayerCache | None = None
    ) -> Tensor:
        """(BW, T, D), (B, K, D), (B, K) -> (BW, T, D); with a cache, T are the positions after those it holds."""

        def look_back(y: Tensor) -> Tensor:
            k, v = self.self_attention.keys_values(y)
            if cache is not None:
                k, v = cache.past.extend(k, v)
            # A single new position sees all of its past, so that no mask is needed.
            return self.self_attention.attend(y, k, v, is_causal=y.size(1) > 1)

        def look_across(y: Tensor) -> Tensor:
            if cache is None:
                k, v = self.cross_attention.keys_values(memory)
            elif cache.memory.k is None or cache.memory.v is None:
                k, v = cache.memory.extend(*self.cross_attention.keys_values(memory))
            else:
                k, v = cache.memory.k, cache.memory.v
            # A document's hypotheses are further queries to one memory: (BW, T, D) -> (B, WT, D) -> (BW, T, D)
            queries = y.reshape(k.size(0), -1, y.size(-1))
            return self.cross_attention.attend(queries, k, v, memory_padding_mask).view_as(y)

        x = self.around_self_attention(x, look_back)
        x = self.around_cross_attention(x, look_across)
        return self.around_feed_forward(x, self.feed_forward)


class Decoder(nn.Module):
    """Predicts the next token from a target prefix and the memory.

    Args:
        embedding: token embeddings, (V, D); the output layer shares them.
        positions: position embeddings, or None (Pietruszka et al. 2022, table 5).
        layers: all layers.
        norm: normalises the last layer's output (pre-norm models), or None.
        dropout: probability of dropping a value of the embedded prefix while training.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        positions: SinusoidalPositions | None,
        layers: list[DecoderLayer],
        norm: nn.LayerNorm | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.dropout = Dropout(dropout)

    def new_cache(self) -> DecoderCache:
        """Return an empty cache."""
        return DecoderCache(len(self.layers))

    def features(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_padding_mask: Tensor | None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """Return the last layer's output.

        Args:
            tokens: (BW, T), prefixes, padded on the right if at all; those of a document stand together. With a
                cache, what follows those it holds.
            memory: (B, K, D); with a filled cache, what it already holds is used instead.
            memory_padding_mask: (B, K), True at padding, or None.
            cache: of these hypotheses, extended in place; None computes the whole prefix.

        Returns:
            (BW, T, D).
        """
        start = 0 if cache is None else cache.length
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        if self.positions is not None:
            end = start + tokens.size(1)
            x = x + self.positions(torch.arange(start, end, device=tokens.device), end).to(x.dtype)
        x = self.dropout(x)
        for number, layer in enumerate(self.layers):
            x = layer(x, memory, memory_padding_mask, None if cache is None else cache.layers[number])
        return x if self.norm is None else self.norm(x)

    def logits(self, features: Tensor) -> Tensor:
        """Score the vocabulary: (BW, T, D) -> (BW, T, V)."""
        return F.linear(features, self.embedding.weight)

    def forward(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_padding_mask: Tensor | None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """Return the logits of the token after each of ``tokens``, (BW, T, V); arguments as in `features`."""
        return self.logits(self.features(tokens, memory, memory_padding_mask, cache))

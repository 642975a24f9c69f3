"""The decoder: causal self-attention, cross-attention to the pooled memory, and K/V caches."""

import math
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.attention import MultiheadAttention
from pyramidions.nn.decoder_cache import DecoderCache, LayerCache
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.position import SinusoidalPositions
from pyramidions.nn.residual import ResidualConnection, ResidualStack


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention and a feed-forward part.

    Args:
        self_attention: among target positions.
        cross_attention: from target positions to the memory.
        feed_forward: what follows.
        around_self_attention: its residual connection.
        around_cross_attention: likewise.
        around_feed_forward: likewise.

    Raises:
        ValueError: self-attention that cannot hide from a hypothesis what others wrote.
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
        if not self_attention.attention.masks_by_query:
            raise ValueError(
                "A decoder's `self_attention` must be of a kind that masks by query, "
                f"but is {type(self_attention.attention).__name__}."
            )
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_self_attention = around_self_attention
        self.around_cross_attention = around_cross_attention
        self.around_feed_forward = around_feed_forward

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_padding_mask: Tensor | None,
        cache: LayerCache | None = None,
        hidden: Tensor | None = None,
    ) -> Tensor:
        """Decode.

        Args:
            x: (BW, T, D); with a cache, the positions after those it holds.
            memory: (B, K, D).
            memory_padding_mask: (B, K), True at padding, or None.
            cache: of this layer, extended in place, or None.
            hidden: what a position must not see of all that the cache holds then, as attention that masks by query
                takes it, or None.

        Returns:
            (BW, T, D).
        """

        # A document's hypotheses are further queries to its keys and values: (BW, T, D) -> (B, WT, D)
        def of_documents(y: Tensor) -> Tensor:
            return y.reshape(memory.size(0), -1, y.size(-1))

        def look_back(y: Tensor) -> Tensor:
            if cache is None:
                return self.self_attention(y, is_causal=True)
            queries = of_documents(y)
            k, v = cache.extend(*self.self_attention.keys_values(queries))
            return self.self_attention.attend(queries, k, v, hidden).view_as(y)

        def look_across(y: Tensor) -> Tensor:
            held = None if cache is None else cache.memory
            k, v = self.cross_attention.keys_values(memory) if held is None else held
            if cache is not None:
                cache.memory = k, v
            return self.cross_attention.attend(of_documents(y), k, v, memory_padding_mask).view_as(y)

        x = self.around_self_attention(x, look_back)
        x = self.around_cross_attention(x, look_across)
        return self.around_feed_forward(x, self.feed_forward)

    def cross_attention_weights(self, x: Tensor, memory: Tensor, memory_padding_mask: Tensor | None) -> Tensor:
        """Return how much the layer's input ``x`` (B, T, D) attends in it to the memory (B, K, D): (B, H, T, K)."""
        x = self.around_self_attention(x, lambda y: self.self_attention(y, is_causal=True))
        return self.cross_attention.weights(self.around_cross_attention.entering(x), memory, memory_padding_mask)


class Decoder(nn.Module):
    """Predicts the next token from a target prefix and the memory.

    Args:
        embedding: token embeddings, (V, D); the output layer shares them.
        positions: position embeddings, or None (Pietruszka et al. 2022, table 5).
        layers: all layers.
        residual: runs them in training; a cached step keeps nothing for a backward pass.
        norm: normalises the last layer's output (pre-norm models), or None.
        dropout: probability of dropping a value of the embedded prefix while training.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        positions: SinusoidalPositions | None,
        layers: list[DecoderLayer],
        residual: ResidualStack,
        norm: nn.LayerNorm | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.layers = nn.ModuleList(layers)
        self.residual = residual
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
            memory: (B, K, D); with a filled cache, what it holds of these documents is used instead.
            memory_padding_mask: (B, K), True at padding, or None; likewise.
            cache: of these hypotheses, extended in place; None computes the whole prefix.

        Returns:
            (BW, T, D).

        Raises:
            ValueError: not as many prefixes of each document.
        """
        if len(tokens) % memory.size(0):
            raise ValueError(
                f"There must be as many prefixes of each document, but {len(tokens)} are of {memory.size(0)}."
            )
        x = self._embed(tokens, 0 if cache is None else cache.length)
        if cache is None:
            x = self.residual(self.layers, x, memory, memory_padding_mask)
        else:
            documents = memory.size(0)
            hidden = cache.advance(documents, len(tokens) // documents, tokens.size(1), tokens.device)
            # Masks are the same for all layers, and that of the memory for all steps.
            bias = None if hidden is None else as_bias(hidden, x)
            if memory_padding_mask is not None and cache.memory_bias is None:
                # All of a document of pure padding is seen: a softmax over nothing would be NaN.
                padding = memory_padding_mask & ~memory_padding_mask.all(dim=1, keepdim=True)
                cache.memory_bias = as_bias(padding, x)
            for layer, held in zip(self.layers, cache.layers, strict=True):
                x = layer(x, memory, cache.memory_bias, held, bias)
        return x if self.norm is None else self.norm(x)

    @torch.no_grad()
    def cross_attention_weights(self, tokens: Tensor, memory: Tensor, memory_padding_mask: Tensor | None) -> Tensor:
        """Return how much of its cross-attention each position spends on each vector of the memory.

        The mean over all layers and heads.

        Args:
            tokens: (B, T), a prefix of each document.
            memory: (B, K, D).
            memory_padding_mask: (B, K), True at padding, or None.

        Returns:
            (B, T, K) in float32; each row sums to 1.

        Raises:
            ValueError: the cross-attention is of a kind that cannot tell.
        """
        total = torch.zeros(*tokens.shape, memory.size(1), device=memory.device)

        def watched(layer: DecoderLayer, x: Tensor, *context: Tensor) -> Tensor:
            total.add_(layer.cross_attention_weights(x, *context).mean(dim=1))
            out: Tensor = layer(x, *context)
            return out

        layers = [partial(watched, cast(DecoderLayer, layer)) for layer in self.layers]
        self.residual(layers, self._embed(tokens, 0), memory, memory_padding_mask)
        return total / len(self.layers)

    @property
    def tells_weights(self) -> bool:
        """Whether `cross_attention_weights` can be asked."""
        return all(cast(DecoderLayer, layer).cross_attention.attention.tells_weights for layer in self.layers)

    def _embed(self, tokens: Tensor, start: int) -> Tensor:
        """Embed ``tokens`` (BW, T) that stand at ``start`` and after it: (BW, T, D)."""
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        if self.positions is not None:
            end = start + tokens.size(1)
            x = x + self.positions(torch.arange(start, end, device=tokens.device), end).to(x.dtype)
        return self.dropout(x)

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

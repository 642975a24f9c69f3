"""The decoder whose layers attend to the memory."""

from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import CrossAttention
from pyramidions.nn.decoder.cache import DecoderCache
from pyramidions.nn.decoder.core import DECODER, Decoder
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.layer import Layer
from pyramidions.nn.sublayer import LayerContext, Watcher


@DECODER.register("cross_attending")
class CrossAttendingDecoder(Decoder):
    """Causal self-attention, cross-attention to the memory, a feed-forward part (Vaswani et al. 2017, section 3.1)."""

    sublayers = ("self_attention", "cross_attention", "feed_forward")

    @property
    def _layers(self) -> list[Layer]:
        return [cast(Layer, layer) for layer in self.layers]

    def new_cache(self) -> DecoderCache:
        return DecoderCache([layer.new_states() for layer in self._layers])

    def features(
        self, tokens: Tensor, memory: Tensor, memory_padding_mask: Tensor | None, cache: DecoderCache | None = None
    ) -> Tensor:
        documents = memory.size(0)
        if len(tokens) % documents:
            raise ValueError(
                f"`tokens` ({len(tokens)} rows) must be divisible by the number of documents ({documents})."
            )
        if cache is None:
            context = LayerContext(None, memory, memory_padding_mask)
            x = self.stack(self._layers, self.embedder(self.begun(tokens)), context)
        else:
            x = self.embedder(self.begun(tokens, cache.length), cache.length)
            blocked = cache.advance(documents, len(tokens) // documents, tokens.size(1), tokens.device)
            # Masks are the same for all layers, and that of the memory for all steps.
            bias = None if blocked is None else as_bias(blocked, x)
            if memory_padding_mask is not None and cache.memory_bias is None:
                # All of a document of pure padding is seen: a softmax over nothing would be NaN.
                padding = memory_padding_mask & ~memory_padding_mask.all(dim=1, keepdim=True)
                additive = all(attention.attention.masks_by_query for attention in self._cross_attention())
                cache.memory_bias = as_bias(padding, x) if additive else padding
            context = LayerContext(bias, memory, cache.memory_bias)
            # (BW, T, D) -> (B, WT, D) and back
            x = self.stack.step(self._layers, x.reshape(documents, -1, x.size(-1)), context, cache.states).view_as(x)
        return x if self.norm is None else self.norm(x)

    @torch.no_grad()
    def cross_attention_weights(self, tokens: Tensor, memory: Tensor, memory_padding_mask: Tensor | None) -> Tensor:
        total = torch.zeros(*tokens.shape, memory.size(1), device=memory.device)
        context = LayerContext(None, memory, memory_padding_mask)

        def watch(attention: CrossAttention, x: Tensor) -> None:
            total.add_(attention.weights(x, context).mean(dim=1))

        watchers: dict[nn.Module, Watcher] = {
            attention: partial(watch, attention) for attention in self._cross_attention()
        }
        self.stack(self._layers, self.embedder(self.begun(tokens)), context._replace(watchers=watchers))
        return total / len(self.layers)

    @property
    def tells_weights(self) -> bool:
        return all(attention.attention.tells("weights") for attention in self._cross_attention())

    def _cross_attention(self) -> list[CrossAttention]:
        found = [layer.function(CrossAttention) for layer in self._layers]
        return [attention for attention in found if attention is not None]

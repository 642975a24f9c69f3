"""The decoder whose layers attend to memories."""

from functools import partial

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import CrossAttention, Feature
from pyramidions.nn.decoder.cache import DecoderCache
from pyramidions.nn.decoder.decoder import DECODER, Decoder
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.sublayer import LayerContext, Memory, Watcher


@DECODER.register("cross_attending")
class CrossAttendingDecoder(Decoder):
    """Causal self-attention, cross-attention to each memory, a feed-forward part (Vaswani et al. 2017, section 3.1)."""

    sublayers = ("self_attention", "cross_attention", "feed_forward")

    def features(self, tokens: Tensor, memories: tuple[Memory, ...], cache: DecoderCache | None = None) -> Tensor:
        documents, width = len(memories[0].x), self.width(tokens, memories[0])
        if cache is None:
            context = LayerContext(None, memories)
            x = self.stack(self._layers, self.embedder(self.begun(tokens)), context)
        else:
            x = self.embedder(self.begun(tokens, cache.length), cache.length)
            if not cache.length:
                # The first step reads the memories for all others.
                masks = (self._mask(number, memory, x) for number, memory in enumerate(memories))
                memories = tuple(
                    memory._replace(padding_mask=mask) for memory, mask in zip(memories, masks, strict=True)
                )
            blocked = cache.advance(documents, width, tokens.size(1), tokens.device)
            # The same for all layers.
            bias = None if blocked is None else as_bias(blocked, x)
            context = LayerContext(bias, memories, hypotheses=width)
            # (BW, T, D) -> (B, WT, D) and back
            x = self.step(x.reshape(documents, -1, x.size(-1)), context, cache).view_as(x)
        return x if self.norm is None else self.norm(x)

    def _mask(self, number: int, memory: Memory, like: Tensor) -> Tensor | None:
        """Return what masks a memory in cached steps."""
        if memory.padding_mask is None:
            return None
        reading = (attention for attention in self._cross_attention() if attention.reads == number)
        if not all(Feature.QUERY_MASKS in each.attention.supports for each in reading):
            return memory.padding_mask
        # All of a document of pure padding is seen: a softmax over nothing would be NaN.
        return as_bias(memory.padding_mask & ~memory.padding_mask.all(dim=1, keepdim=True), like)

    @torch.no_grad()
    def cross_attention_weights(self, tokens: Tensor, memories: tuple[Memory, ...]) -> tuple[Tensor, ...]:
        totals = tuple(torch.zeros(*tokens.shape, x.size(1), device=x.device) for x, *_ in memories)
        context = LayerContext(None, memories)

        def watch(attention: CrossAttention, x: Tensor) -> None:
            totals[attention.reads].add_(attention.weights(x, context).mean(dim=1))

        watchers: dict[nn.Module, Watcher] = {
            attention: partial(watch, attention) for attention in self._cross_attention()
        }
        self.stack(self._layers, self.embedder(self.begun(tokens)), context._replace(watchers=watchers))
        return tuple(total / len(self.layers) for total in totals)

    @property
    def tells_weights(self) -> bool:
        return all(Feature.WEIGHTS in attention.attention.supports for attention in self._cross_attention())

    def _cross_attention(self) -> list[CrossAttention]:
        return [attention for layer in self._layers for attention in layer.functions(CrossAttention)]

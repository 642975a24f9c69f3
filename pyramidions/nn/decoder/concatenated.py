"""The decoder that reads the encoder's output in front of the target."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Count, Range
from pyramidions.nn.attention import Feature, SelfAttention
from pyramidions.nn.decoder.cache import DecoderCache
from pyramidions.nn.decoder.decoder import DECODER, Decoder
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.layer import Layer
from pyramidions.nn.output import Output
from pyramidions.nn.stack import Stack
from pyramidions.nn.sublayer import LayerContext, Memory, Watcher


class Joined(NamedTuple):
    """The real vectors of a memory, the target right behind them, and all padding of the memory at the end.

    So a document has the same neighbours alone and in a batch, and what is causal never reads padding.
    """

    x: Tensor  # (B, K + T, D)
    # (B, K + T), where each vector stood in the memory followed by the target; None where nothing moved
    order: Tensor | None
    places: Tensor  # (B, T), where the target stands
    length: int  # K

    @classmethod
    def of(cls, memory: Memory, target: Tensor) -> "Joined":
        """Join a memory with targets (B, T, D)."""
        x = torch.cat([memory.x, target], dim=1)
        (rows, length), count = memory.x.shape[:2], target.size(1)
        behind = torch.arange(count, device=x.device).expand(rows, -1)
        if memory.padding_mask is None:
            return cls(x, None, behind + length, length)
        padding_mask = torch.cat([memory.padding_mask, torch.zeros_like(behind, dtype=torch.bool)], dim=1)
        order = padding_mask.byte().argsort(dim=1, stable=True)
        real = (~memory.padding_mask).sum(dim=1, keepdim=True)
        return cls(_rows(x, order), order, behind + real, length)

    def target(self, x: Tensor) -> Tensor:
        """Return the target's part: (B, K + T, D) -> (B, T, D)."""
        return x[:, self.length :] if self.order is None else _rows(x, self.places)

    def memory(self, weights: Tensor) -> Tensor:
        """Return the memory's part of numbers for each vector, in its own order: (B, T, K + T) -> (B, T, K)."""
        if self.order is not None:
            weights = torch.zeros_like(weights).scatter(2, self.order[:, None].expand_as(weights), weights)
        return weights[..., : self.length]


def padded_in_front(memory: Memory) -> Memory:
    """Move the padding of a memory to the front; the rest keeps its order."""
    if memory.padding_mask is None:
        return memory
    order = (~memory.padding_mask).byte().argsort(dim=1, stable=True)
    return Memory(_rows(memory.x, order), memory.padding_mask.gather(1, order))


def _rows(x: Tensor, places: Tensor) -> Tensor:
    """(B, L, D), (B, T) -> (B, T, D)."""
    return x.gather(1, places[..., None].expand(-1, -1, x.size(2)))


_MOST = 100  # self-attentions of a layer


@DECODER.register("concatenated")
class ConcatenatedDecoder(Decoder):
    """The encoder's output, then the target, as one causal sequence (Jaszczur et al. 2021, section 4, Terraformer).

    A layer has causal self-attentions and a feed-forward part, and no cross-attention. What comes of the memory's own
    positions is left out of the output. Both parts count positions from 0 on their own: the memory as the encoder did,
    the target in the embedder. All of the memory goes through all layers, so it had better be pooled.

    Args:
        attention_layers: self-attentions of a layer.
        longest_memory: the most vectors of a document that the encoder hands on. They all attend to each other.
        reads_streams: the memory is both streams of a reversible encoder without a norm, side by side, (B, K, 2D), and
            those of the decoder go on from them, as in the Terraformer's public code. Without, it is their mean,
            normalised, with which both streams of the decoder begin; so it is where the stack has one stream.
    """

    sublayers = ("self_attention", "self_attention_2", "feed_forward")
    joins = True

    def __init__(
        self,
        embedder: Embedder,
        layers: list[Layer],
        stack: Stack,
        output: Output,
        norm: nn.Module | None = None,
        start: int | None = None,
        attention_layers: Annotated[int, Range(1, _MOST)] = 2,
        longest_memory: Count = 4096,
        reads_streams: bool = False,
        memory_length: int | None = None,
    ) -> None:
        super().__init__(embedder, layers, stack, output, norm, start)
        if memory_length is not None and memory_length > longest_memory:
            raise ValueError(
                f"A concatenated decoder attends among all vectors that the encoder hands on, at most {longest_memory} "
                f"(`longest_memory`), but `pooling_lengths` leaves {memory_length}."
            )
        self.longest_memory = longest_memory
        self.reads_streams = reads_streams

    @classmethod
    def sublayers_with(cls, options: Mapping[str, Any]) -> tuple[str, ...]:
        count = options.get("attention_layers", 2)
        if not isinstance(count, int) or count > _MOST:
            return cls.sublayers  # it is refused when the decoder is built
        return ("self_attention", *(f"self_attention_{place}" for place in range(2, count + 1)), "feed_forward")

    def features(self, tokens: Tensor, memories: tuple[Memory, ...], cache: DecoderCache | None = None) -> Tensor:
        memory = self._only(memories)
        documents, width = len(memory.x), self.width(tokens, memory)
        if cache is None:
            x = self._pass(tokens, memory if width == 1 else memory.select(_each(documents, width, tokens.device)))
        else:
            x = self._step(tokens, memory, documents, width, cache)
        return x if self.norm is None else self.norm(x)

    def _pass(self, tokens: Tensor, memory: Memory) -> Tensor:
        joined = self._joined(memory, tokens)
        return joined.target(self.stack(self._layers, joined.x, LayerContext()))

    def _joined(self, memory: Memory, tokens: Tensor) -> Joined:
        return Joined.of(memory, self._opened(self.embedder(self.begun(tokens))))

    def _opened(self, x: Tensor) -> Tensor:
        """Return the stack's input for embedded tokens; each of its streams begins with them."""
        return x.repeat(1, 1, self.stack.streams) if self.reads_streams else x

    def _step(self, tokens: Tensor, memory: Memory, documents: int, width: int, cache: DecoderCache) -> Tensor:
        if not cache.documents:
            self._read(memory, width, cache)
        x = self.embedder(self.begun(tokens, cache.length), cache.length)
        blocked = cache.advance(documents, width, tokens.size(1), tokens.device)
        context = LayerContext(None if blocked is None else as_bias(blocked, x), hypotheses=width)
        # (BW, T, D) -> (B, WT, D) and back
        new = self._opened(x.reshape(documents, -1, x.size(-1)))
        return self.step(new, context, cache).view_as(x)

    def _read(self, memory: Memory, width: int, cache: DecoderCache) -> None:
        """Fill an empty cache with what all ``width`` hypotheses of a document read of its memory."""
        # What states carry on is then that of the last real vector.
        memory = padded_in_front(memory)
        length, device = memory.x.size(1), memory.x.device
        later = torch.ones(length, length, dtype=torch.bool, device=device).triu(diagonal=1)
        blocked = later[None]
        if memory.padding_mask is not None:
            # (B, K, K); padding sees itself, because a softmax over nothing would be NaN.
            itself = torch.eye(length, dtype=torch.bool, device=device)
            blocked = (later | memory.padding_mask[:, None]) & ~itself
        context = LayerContext(as_bias(blocked, memory.x), new_padding_mask=memory.padding_mask)
        self.stack.step(self._layers, memory.x, context, cache.states)
        cache.begin(memory, width)

    @torch.no_grad()
    def cross_attention_weights(self, tokens: Tensor, memories: tuple[Memory, ...]) -> tuple[Tensor, ...]:
        joined = self._joined(self._only(memories), tokens)
        position = torch.arange(joined.x.size(1), device=tokens.device)
        # (B, T, K + T), True at what follows a position of the target
        later = position > joined.places[..., None]
        total = torch.zeros(later.shape, device=tokens.device)

        def watch(attention: SelfAttention, x: Tensor) -> None:
            q, k, _ = attention.projections(x)
            # (B, H, K + T, E) -> (B, H, T, E)
            q = q.gather(2, joined.places[:, None, :, None].expand(-1, q.size(1), -1, q.size(3)))
            total.add_(attention.attention.weights(q, k, LayerContext(later)).mean(dim=1))

        watchers: dict[nn.Module, Watcher] = {each: partial(watch, each) for each in self._attention()}
        self.stack(self._layers, joined.x, LayerContext(watchers=watchers))
        return (joined.memory(total / len(watchers)),)

    @property
    def tells_weights(self) -> bool:
        return all(Feature.WEIGHTS in attention.attention.supports for attention in self._attention())

    def _attention(self) -> list[SelfAttention]:
        return [attention for layer in self._layers for attention in layer.functions(SelfAttention)]

    def _only(self, memories: tuple[Memory, ...]) -> Memory:
        if len(memories) != 1:
            raise ValueError(f"A concatenated decoder reads one memory, but there are {len(memories)}.")
        (memory,) = memories
        if memory.x.size(1) > self.longest_memory:
            raise ValueError(
                f"A concatenated decoder reads at most {self.longest_memory} vectors of a document (`longest_memory`), "
                f"but there are {memory.x.size(1)}."
            )
        return memory


def _each(documents: int, width: int, device: torch.device) -> Tensor:
    """Return the number of each of ``documents``, ``width`` times: (BW,)."""
    return torch.arange(documents, device=device).repeat_interleave(width)

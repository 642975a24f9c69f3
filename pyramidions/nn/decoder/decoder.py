"""The role of a decoder, and the registry of kinds."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.decoder.cache import DecoderCache
from pyramidions.nn.decoder.captured import CapturedSteps
from pyramidions.nn.decoder.static import Record, RecordedSteps
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.layer import Layer
from pyramidions.nn.output import Output, PointerOutput
from pyramidions.nn.stack import Stack
from pyramidions.nn.sublayer import LayerContext, Memory


class Decoder(nn.Module, ABC):
    """Predicts the next token from a target prefix and what the encoder hands on.

    An embedder makes vectors (B, T, D) of the prefix, the stack runs the layers on them, a ``norm`` follows in pre-norm
    models, and the output layer scores the vocabulary: (B, T, V). A decoder reads the token ``start`` first, whatever a
    prefix begins with; None for what it begins with. Searches and datasets begin with the end, `</s>`, and need not
    know.
    """

    #: the names of each layer's sublayers, in order, without options
    sublayers: ClassVar[tuple[str, ...]]
    #: whether the layers' self-attention reads the memory in front of the target
    joins: ClassVar[bool] = False

    def __init__(
        self,
        embedder: Embedder,
        layers: list[Layer],
        stack: Stack,
        output: Output,
        norm: nn.Module | None = None,
        start: int | None = None,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.layers = nn.ModuleList(layers)
        self.stack = stack
        self.norm = norm
        self.output = output
        self.start = start
        self.captured_steps = CapturedSteps()
        #: what records the cached steps of a search, as CUDA graphs; None for nothing
        self.record: Record | None = None

    @classmethod
    def sublayers_with(cls, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of each layer's sublayers, in order, given the options of the kind."""
        return cls.sublayers

    def begun(self, tokens: Tensor, position: int = 0) -> Tensor:
        """Return ``tokens`` (BW, T), the first of them at ``position`` of its text, with `start` in front."""
        if self.start is None or position:
            return tokens
        return torch.cat([torch.full_like(tokens[:, :1], self.start), tokens[:, 1:]], dim=1)

    @property
    def _layers(self) -> list[Layer]:
        return [cast(Layer, layer) for layer in self.layers]

    def new_cache(self) -> DecoderCache:
        """Return an empty cache."""
        steps = None if self.record is None else RecordedSteps(self.record)
        return DecoderCache([layer.new_states() for layer in self._layers], steps)

    def step(self, x: Tensor, context: LayerContext, cache: DecoderCache) -> Tensor:
        """Run the layers on what follows a cache: (B, WT, D) -> (B, WT, D)."""
        steps = cache.recorded_steps or self.captured_steps
        return steps.step(self.stack, self._layers, x, context, cache.states)

    @property
    def steps_alike(self) -> bool:
        """Whether the cached steps of all layers are alike; see `SublayerFunction.steps_alike`."""
        return all(layer.steps_alike for layer in self._layers)

    @staticmethod
    def width(tokens: Tensor, memory: Memory) -> int:
        """Return how many hypotheses, rows of ``tokens``, a document of the memory has."""
        if len(tokens) % len(memory.x):
            raise ValueError(
                f"`tokens` ({len(tokens)} rows) must be divisible by the number of documents ({len(memory.x)})."
            )
        return len(tokens) // len(memory.x)

    @abstractmethod
    def features(self, tokens: Tensor, memories: tuple[Memory, ...], cache: DecoderCache | None = None) -> Tensor:
        """Return the last layer's output for prefixes (BW, T), those of a document in consecutive rows: (BW, T, D).

        Prefixes are padded on the right if at all. A ``cache`` of these hypotheses is extended in place: then
        ``tokens`` follow those in it, and of the memories only the number of documents matters once it is filled.
        """

    @abstractmethod
    def cross_attention_weights(self, tokens: Tensor, memories: tuple[Memory, ...]) -> tuple[Tensor, ...]:
        """Return how much each position attends to each vector of each memory, in the mean over all layers and heads.

        (B, T), a prefix of each document -> (B, T, K) in float32 for each memory; each row sums to 1, or to less where
        heads have nothing to read, or read the prefix as well. The attention must have `weights`.
        """

    @property
    @abstractmethod
    def tells_weights(self) -> bool:
        """Whether `cross_attention_weights` can be called."""

    def logits(self, features: Tensor, memories: tuple[Memory, ...] = (), cache: DecoderCache | None = None) -> Tensor:
        """Score the vocabulary: (BW, T, D) -> (BW, T, V).

        Only an output layer that points reads the memories: the first of them, which must tell its tokens.
        """
        if cache is None:
            prepared = self.output.prepare(memories, self.embedder.tokens.weight)
        else:
            if cache.prepared is None:
                cache.prepared = self.output.prepare(memories, self.embedder.tokens.weight)
            prepared = cache.prepared
        return self.output(features, self.embedder.tokens.weight, prepared)

    @torch.no_grad()
    def copied(
        self, written: Tensor, memories: tuple[Memory, ...], eos: int, log_probs: Tensor | None = None
    ) -> Tensor | None:
        """Tell how likely each token was copied from each of the document; None if the output layer copies nothing.

        The text ``written`` (B, T) is padded on the right if at all, and starts from ``eos``. Its ``log_probs`` (B, T)
        are computed if they are not known. Returns what `PointerOutput.copied` does: (B, T, L).
        """
        if not isinstance(self.output, PointerOutput):
            return None
        # A token is predicted from the one before it.
        prefix = torch.cat([torch.full_like(written[:, :1], eos), written[:, :-1]], dim=1)
        features, prepared = self.features(prefix, memories), self.output.prepare(memories, self.embedder.tokens.weight)
        if log_probs is None:
            whole = self.output(features, self.embedder.tokens.weight, prepared)
            log_probs = whole.gather(2, written[..., None]).squeeze(2)
        return self.output.copied(features, prepared, written, log_probs)

    def forward(self, tokens: Tensor, memories: tuple[Memory, ...], cache: DecoderCache | None = None) -> Tensor:
        """Return the logits of the token after each of ``tokens``, (BW, T, V); arguments as in `features`."""
        return self.logits(self.features(tokens, memories, cache), memories, cache)


DECODER: Registry[Decoder] = Registry("decoder")

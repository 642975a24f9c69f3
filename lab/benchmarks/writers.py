"""What writes on from a given memory, after tokens that are written already: the role, and our own search."""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from contenders import EOS
from torch import Tensor

from pyramidions.nn import BeamSearch, Decoder, DecoderCache, Transformer
from pyramidions.nn.attention.state import ProjectedMemory
from pyramidions.nn.encoder import Encoded
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.sublayer import Memory

WARM_UP = 2  # steps: the second is the first before which hypotheses change places
#: A decoder's state; what it holds is the decoder's own affair.
State = Any


@dataclass(frozen=True)
class Given:
    """What a beam search goes on from.

    Attributes:
        memory: (B, K, D), what an encoder handed on; none of it is padding.
        written: (B, N), tokens that every hypothesis of a document begins with, at least one.
        beam: W, hypotheses of a document.
        after: of how many of ``written`` texts are continued, each at most N.
    """

    memory: Tensor
    written: Tensor
    beam: int
    after: tuple[int, ...]

    @property
    def padding_mask(self) -> Tensor:
        """(B, K), True nowhere."""
        return torch.zeros(self.memory.shape[:2], dtype=torch.bool, device=self.memory.device)

    @property
    def start(self) -> Tensor:
        """(B, 1), what the decoder reads after those."""
        return self.written.new_full((len(self.written), 1), EOS)

    def per_hypothesis(self, x: Tensor) -> Tensor:
        """(B, ...) -> (BW, ...), hypotheses of a document together."""
        return x.repeat_interleave(self.beam, dim=0)


class Writer(ABC):
    """Writes on from a memory: `project` it, then `ready` before each `write`; `forget` frees it.

    Args:
        given: the memory, and what is written before.
        steps: tokens of a `write`, the end included.
    """

    def __init__(self, given: Given, steps: int) -> None:
        self.given = given
        self.steps = steps
        self._after = 0
        self._projected: State = None
        self._begun: State = None

    @abstractmethod
    def _read(self) -> State:
        """Return the state of a decoder that has keys and values of the memory."""

    @abstractmethod
    def _rewind(self, state: State, after: int) -> State:
        """Return a state with the memory of ``state`` and ``after`` tokens written."""

    @abstractmethod
    def _write(self, state: State, steps: int) -> None:
        """Write so many tokens of all documents."""

    def project(self) -> None:
        """Turn the memory into keys and values, and keep them."""
        self._projected = self._read()

    def ready(self, after: int) -> None:
        """Let the next `write` go on after ``after`` tokens, with nothing cold."""
        self._after = after
        self._write(self._rewind(self._projected, after), WARM_UP)
        self._begun = self._rewind(self._projected, after)

    def write(self) -> None:
        """Write the tokens of all documents."""
        begun, self._begun = self._begun, None
        self._write(begun, self.steps)

    def forget(self) -> None:
        """Free the projected memory."""
        self._projected = self._begun = None


class Past:
    """What our decoder has already written, by each of `width` hypotheses: caches without the memory."""

    def __init__(self, decoder: Decoder, given: Given, width: int, kind: type[DecoderCache] = DecoderCache) -> None:
        self.width = width
        nothing = kind(decoder.new_cache().states)
        cache = kind(decoder.new_cache().states)
        written = given.written.repeat_interleave(width, dim=0)
        self._caches: dict[int, DecoderCache] = {}
        for begin, end in pairwise([0, *sorted(given.after)]):
            if begin < end:
                decoder.features(written[:, begin:end], (Memory(given.memory, given.padding_mask),), cache)
            self._caches[end] = self._copy(cache, nothing)

    @staticmethod
    def _copy(cache: DecoderCache, projected: DecoderCache) -> DecoderCache:
        # deepcopy leaves alone what its memo says is copied already.
        copied = copy.deepcopy(cache, {id(memory.keys_values): None for memory in _memories(cache)})
        for memory, other in zip(_memories(copied), _memories(projected), strict=True):
            memory.keys_values = other.keys_values
        return copied

    def with_memory(self, projected: DecoderCache, after: int) -> DecoderCache:
        """Return a cache with ``after`` tokens written and the memory of ``projected``."""
        return self._copy(self._caches[after], projected)

    def rewind(self, state: State, after: int) -> State:
        """Return fairseq's incremental state with the memory of ``state`` and ``after`` tokens written."""
        return {key: self.with_memory(cache, after) for key, cache in state.items()}


def _memories(cache: DecoderCache) -> list[ProjectedMemory]:
    return [state for layer in cache.states for state in layer if isinstance(state, ProjectedMemory)]


class CopyingCache(DecoderCache):
    """A cache in which each hypothesis is a document of its own, with keys and values of the memory of its own."""

    def reorder(self, order: Tensor, width: int) -> None:
        """Let all that is held follow the hypotheses ``order`` (BW,); all documents stay."""
        self.select(order, order)


class _Begun:
    """A model as our search sees it, with documents read and the beginnings of their summaries written."""

    training = False

    def __init__(self, transformer: Transformer, given: Given, cache: DecoderCache) -> None:
        self.padding_idx = transformer.padding_idx
        self.embedder = transformer.decoder.embedder
        self._forward = transformer.decoder.forward
        self._given = given
        self._cache = cache

    @property
    def decoder(self) -> "_Begun":
        return self

    def encoder(self, tokens: Tensor, padding_mask: Tensor) -> Encoded:
        given = self._given
        memories = (Memory(given.memory, given.padding_mask),)
        return Encoded(Sequence(given.memory, given.padding_mask), {}, memories)

    def new_cache(self) -> DecoderCache:
        return self._cache

    def __call__(self, tokens: Tensor, memories: tuple[Memory], cache: DecoderCache) -> Tensor:
        # The cache holds the memory, without padding, so that only the number of rows matters here: (B or BW, K, D)
        rows = cache.documents or len(tokens)
        x, padding_mask = self._given.memory[:1], self._given.padding_mask[:1]
        return self._forward(tokens, (Memory(x.expand(rows, -1, -1), padding_mask.expand(rows, -1)),), cache)


class OwnWriter(Writer):
    """Our `BeamSearch` over our model; arguments as in `Writer`."""

    def __init__(self, transformer: Transformer, given: Given, steps: int, past: Past) -> None:
        super().__init__(given, steps)
        self._transformer = transformer
        self._past = past

    def _read(self) -> State:
        decoder, given = self._transformer.decoder, self.given
        cache = decoder.new_cache()
        decoder.features(given.start, (Memory(given.memory, given.padding_mask),), cache)
        return cache

    def _rewind(self, state: State, after: int) -> State:
        cache = self._past.with_memory(state, after)
        # The search begins with one hypothesis of each document; what others wrote stays in the cache.
        width = self._past.width
        cache.reorder(torch.arange(0, len(self.given.start) * width, width, device=self.given.start.device), 1)
        return cache

    def _write(self, state: State, steps: int) -> None:
        begun: Any = _Begun(self._transformer, self.given, state)
        forced(self.given.beam, steps)(begun, self.given.start)


def forced(beam: int, tokens: int) -> BeamSearch:
    """Return a search that writes so many tokens of each document, the end included."""
    return BeamSearch(beam, tokens - 1, tokens - 1, eos=EOS, best=1)

"""What writes on from a given memory, after tokens that are written already: our search, fairseq's and LED's.

fairseq and LED keep a row of the memory's keys and values for each hypothesis, and replace them at each step. They go
on from those that the last text left, so that these are never there twice: rows of a document are equal, in any order.
"""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import torch
from side_by_side import EOS
from torch import Tensor
from torch.nn.functional import pad

from pyramidions.nn import BeamSearch, Decoder, DecoderCache, Transformer
from pyramidions.nn.encoder import Encoded

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
    """What our decoder has already written: caches without the memory.

    Args:
        decoder: ours.
        given: the memory, and what is written.
        width: hypotheses of a document, each of which wrote it.
        kind: of cache.
    """

    def __init__(self, decoder: Decoder, given: Given, width: int, kind: type[DecoderCache] = DecoderCache) -> None:
        self.width = width
        nothing = kind(len(decoder.layers))
        cache = kind(len(decoder.layers))
        written = given.written.repeat_interleave(width, dim=0)
        self._caches: dict[int, DecoderCache] = {}
        for begin, end in pairwise([0, *sorted(given.after)]):
            if begin < end:
                decoder.features(written[:, begin:end], given.memory, given.padding_mask, cache)
            self._caches[end] = self._copy(cache, nothing)

    @staticmethod
    def _copy(cache: DecoderCache, projected: DecoderCache) -> DecoderCache:
        # What the copier is told that it has copied, it leaves alone.
        copied = copy.deepcopy(cache, {id(layer.memory): None for layer in cache.layers})
        for layer, other in zip(copied.layers, projected.layers, strict=True):
            layer.memory = other.memory
        return copied

    def with_memory(self, projected: DecoderCache, after: int) -> DecoderCache:
        """Return a cache with ``after`` tokens written and the memory of ``projected``."""
        return self._copy(self._caches[after], projected)

    def rewind(self, state: State, after: int) -> State:
        """Return fairseq's incremental state with the memory of ``state`` and ``after`` tokens written."""
        return {key: self.with_memory(cache, after) for key, cache in state.items()}


class CopyingCache(DecoderCache):
    """A cache in which each hypothesis is a document of its own, with keys and values of the memory of its own."""

    def reorder(self, order: Tensor, documents: Tensor | None = None) -> None:
        """Let all that is held follow the hypotheses ``order`` (BW,); all documents stay."""
        super().reorder(order, order)


class _Begun:
    """A model as our search sees it, of which documents are read and some of their summaries written.

    Args:
        transformer: in evaluation mode.
        given: the memory.
        cache: with the memory's keys and values, and what is written.
    """

    training = False

    def __init__(self, transformer: Transformer, given: Given, cache: DecoderCache) -> None:
        self.padding_idx = transformer.padding_idx
        self.embedding = transformer.decoder.embedding
        self._forward = transformer.decoder.forward
        self._given = given
        self._cache = cache

    @property
    def decoder(self) -> "_Begun":
        return self

    def encoder(self, tokens: Tensor, padding_mask: Tensor) -> Encoded:
        return Encoded(self._given.memory, self._given.padding_mask, {})

    def new_cache(self) -> DecoderCache:
        return self._cache

    def __call__(self, tokens: Tensor, memory: Tensor, padding_mask: Tensor, cache: DecoderCache) -> Tensor:
        # The cache holds the memory, of which none is padding, so that only the rows count here: (B or BW, K, D)
        rows = cache.documents or len(tokens)
        return self._forward(tokens, memory[:1].expand(rows, -1, -1), padding_mask[:1].expand(rows, -1), cache)


class OwnWriter(Writer):
    """Our `BeamSearch` over our model.

    Args:
        transformer: in evaluation mode.
        given: the memory, and what is written before.
        steps: tokens of a `write`, the end included.
        past: of its decoder.
    """

    def __init__(self, transformer: Transformer, given: Given, steps: int, past: Past) -> None:
        super().__init__(given, steps)
        self._transformer = transformer
        self._past = past

    def _read(self) -> State:
        decoder, given = self._transformer.decoder, self.given
        cache = decoder.new_cache()
        decoder.features(given.start, given.memory, given.padding_mask, cache)
        return cache

    def _rewind(self, state: State, after: int) -> State:
        cache = self._past.with_memory(state, after)
        # The search begins with one hypothesis of each document; what others wrote stays in the cache.
        width = self._past.width
        cache.reorder(torch.arange(0, len(self.given.start) * width, width, device=self.given.start.device))
        return cache

    def _write(self, state: State, steps: int) -> None:
        begun: Any = _Begun(self._transformer, self.given, state)
        forced(self.given.beam, steps)(begun, self.given.start)


def forced(beam: int, tokens: int) -> BeamSearch:
    """Return a search that writes so many tokens of each document, the end included."""
    return BeamSearch(beam, tokens - 1, tokens - 1, eos=EOS, best=1)


class FairseqPast:
    """What fairseq's decoder has already written: keys and values, as its incremental state holds them.

    Args:
        decoder: a ``TransformerDecoder``.
        given: the memory, and what is written.
    """

    def __init__(self, decoder: Any, given: Given) -> None:
        self._written: dict[Any, tuple[Tensor, Tensor]] = {}

        def keep(attention: Any, _: object, named: dict[str, Tensor]) -> None:
            projected = attention.k_proj(named["query"]), attention.v_proj(named["query"])
            # (N, B, D) -> (BW, H, N, E)
            k, v = (x.unflatten(-1, (attention.num_heads, -1)).permute(1, 2, 0, 3) for x in projected)
            self._written[attention] = given.per_hypothesis(k), given.per_hypothesis(v)

        hooks = [layer.self_attn.register_forward_pre_hook(keep, with_kwargs=True) for layer in decoder.layers]
        memory = {"encoder_out": [given.memory.transpose(0, 1)], "encoder_padding_mask": [given.padding_mask]}
        decoder.extract_features(given.written, memory)
        for hook in hooks:
            hook.remove()

    def rewind(self, state: State, after: int) -> State:
        """Return an incremental state with the memory of ``state`` and ``after`` tokens written."""
        state = dict(state)
        for attention, (k, v) in self._written.items():
            held = {"prev_key": k[:, :, :after], "prev_value": v[:, :, :after], "prev_key_padding_mask": None}
            attention._set_input_buffer(state, held if after else {})
        return state


class FairseqWriter(Writer):
    """fairseq's own ``SequenceGenerator``, over a model of its own or over ours.

    Args:
        model: as fairseq sees it.
        words: the dictionary.
        given: the memory, and what is written before.
        steps: tokens of a `write`, the end included.
        past: of its decoder.
    """

    def __init__(self, model: Any, words: Any, given: Given, steps: int, past: Past | FairseqPast) -> None:
        super().__init__(given, steps)
        self._model = model
        self._words = words
        self._past = past
        #: of each document the hypotheses' tokens, by how many were written before
        self.found: dict[int, list[list[list[int]]]] = {}

    def _encoded(self) -> dict[str, Any]:
        nothing: dict[str, Any] = {x: [] for x in ("encoder_embedding", "encoder_states", "src_tokens", "src_lengths")}
        # (B, K, D) -> (K, B, D)
        memory = self.given.memory.transpose(0, 1)
        return {**nothing, "encoder_out": [memory], "encoder_padding_mask": [self.given.padding_mask]}

    def _read(self) -> State:
        order = self.given.per_hypothesis(torch.arange(len(self.given.start), device=self.given.start.device))
        memory = self._model.encoder.reorder_encoder_out(self._encoded(), order)
        state: dict[str, Any] = {}
        self._model.decoder.forward(self.given.start[order], encoder_out=memory, incremental_state=state)
        return state

    def _rewind(self, state: State, after: int) -> State:
        return self._past.rewind(state, after)

    def _write(self, state: State, steps: int) -> None:
        from fairseq.sequence_generator import SequenceGenerator

        search = SequenceGenerator(
            [self._model],
            self._words,
            beam_size=self.given.beam,
            min_len=steps - 1,
            max_len_b=steps - 1,
            max_len=steps,  # the end included
        )
        forward = self._model.decoder.forward

        def go_on(tokens: Tensor, encoder_out: dict[str, Any], incremental_state: State) -> object:
            # The search begins with nothing; the state is kept in place.
            for key, held in {} if incremental_state else state.items():
                incremental_state[key] = held
            # The tokens before are in the state, where decoders look for them: (BW, T) -> (BW, N + T)
            tokens = pad(tokens, (self._after, 0), value=EOS)
            return forward(tokens, encoder_out=encoder_out, incremental_state=incremental_state)

        sample = {"net_input": {"src_tokens": self.given.start, "src_lengths": self.given.start[:, 0]}}
        with (
            patch.object(self._model.encoder, "forward_torchscript", lambda _: self._encoded()),
            patch.object(self._model.decoder, "forward", go_on),
        ):
            found = search.generate([self._model], sample)
        self.found[self._after] = [[hypothesis["tokens"].tolist() for hypothesis in each] for each in found]


class LedWriter(Writer):
    """LED's own ``generate``.

    Args:
        model: an LED.
        given: the memory, and what is written before.
        steps: tokens of a `write`, the end included.
    """

    def __init__(self, model: Any, given: Given, steps: int) -> None:
        super().__init__(given, steps)
        self._model = model
        layers = self._forward(given.written, given.memory, given.padding_mask).self_attention_cache.layers
        # (B, H, N, E) -> (BW, H, N, E)
        self._written = [(given.per_hypothesis(layer.keys), given.per_hypothesis(layer.values)) for layer in layers]

    def _forward(self, tokens: Tensor, memory: Tensor, padding_mask: Tensor) -> State:
        out = self._model(decoder_input_ids=tokens, encoder_outputs=(memory,), attention_mask=(~padding_mask).long())
        return out.past_key_values

    def _read(self) -> State:
        # `generate` has a row of memory for each hypothesis.
        given = self.given
        return self._forward(*(given.per_hypothesis(x) for x in (given.start, given.memory, given.padding_mask)))

    def _rewind(self, state: State, after: int) -> State:
        for layer, (k, v) in zip(state.self_attention_cache.layers, self._written, strict=True):
            layer.keys, layer.values = k[:, :, :after], v[:, :, :after]
        return state

    def _write(self, state: State, steps: int) -> None:
        from transformers.modeling_outputs import BaseModelOutput

        self._model.generate(
            decoder_input_ids=self.given.start,
            encoder_outputs=BaseModelOutput(last_hidden_state=self.given.memory),
            attention_mask=(~self.given.padding_mask).long(),
            past_key_values=state,
            num_beams=self.given.beam,
            do_sample=False,
            min_new_tokens=steps,
            max_new_tokens=steps,
        )

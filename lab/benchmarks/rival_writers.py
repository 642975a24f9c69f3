"""How fairseq's search and LED's write on from a given memory.

Both keep a row of the memory's keys and values for each hypothesis, and replace them at each step. They go on from
those that the last text left, so that these are never there twice: rows of a document are equal, in any order.
"""

from typing import Any
from unittest.mock import patch

import torch
from contenders import EOS
from torch import Tensor
from torch.nn.functional import pad
from writers import Given, Past, State, Writer

from pyramidions.nn.sublayer import Memories, Memory
from pyramidions.plugin.models.pyramidion import EncoderOut, PyramidionEncoder


class FairseqPast:
    """What fairseq's decoder has already written: keys and values, as its incremental state holds them."""

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
    """fairseq's own ``SequenceGenerator``, over a model of its own or over ours; arguments as in `Writer`."""

    def __init__(self, model: Any, words: Any, given: Given, steps: int, past: Past | FairseqPast) -> None:
        super().__init__(given, steps)
        self._model = model
        self._words = words
        self._past = past
        #: of each document the hypotheses' tokens, by how many were written before
        self.found: dict[int, list[list[list[int]]]] = {}

    def _encoded(self) -> EncoderOut | dict[str, Any]:
        if isinstance(self._model.encoder, PyramidionEncoder):
            return EncoderOut(Memories((Memory(self.given.memory, self.given.padding_mask),)), {})
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
    """LED's own ``generate``; arguments as in `Writer`."""

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

"""What training changes of a model: parts that learn nothing, and poolings that shrink while it warms up."""

import math
import re

from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.nn import Decoder, Encoder
from pyramidions.nn.attention import ATTENTION, CoreAttention
from pyramidions.nn.decoder import ConcatenatedDecoder
from pyramidions.nn.output import Pointer, PointerOutput
from pyramidions.nn.pooling import TopKPooler

_RANGE = re.compile(r"(encoder|decoder)\.(\d{1,4})(?:-(\d{1,4}))?")
_NAMES = "embeddings, encoder, decoder, poolers, pointer, or layers such as encoder.0 or encoder.0-3"


def freeze(model: nn.Module, parts: str) -> int:
    """Let parts of a model, as for `parameters_of`, learn nothing, in place; return how many values are frozen.

    Raises:
        UserError: an unknown name, a part that the model does not have, or nothing is left to learn.
    """
    for parameter in parameters_of(model, parts):
        parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError(f"--freeze must leave weights to train, but {parts} are all of the model.")
    return sum(parameter.numel() for parameter in model.parameters() if not parameter.requires_grad)


def parameters_of(model: nn.Module, parts: str) -> set[nn.Parameter]:
    """Return the weights of a model's parts: names with commas in between; layers are counted from 0.

    `embeddings` are those of tokens and positions on both sides, with their norms, and an output layer that is tied to
    them. `encoder` and `decoder` are all layers, and the norm behind the last; the encoder has its global vectors with
    it, and the decoder an output layer of its own. `poolers`, with their scorers, are no part of the encoder's layers,
    and the `pointer` of an output layer that copies is no part of the decoder's.

    Raises:
        UserError: an unknown name, or a part that the model does not have.
    """
    modules = [module for name in parts.split(",") for module in _modules(model, name.strip())]
    return {parameter for module in modules for parameter in module.parameters()}


def _modules(model: nn.Module, name: str) -> list[nn.Module]:
    coders: dict[str, Encoder | Decoder] = {}
    for module in model.modules():
        if isinstance(module, Encoder | Decoder):
            coders["encoder" if isinstance(module, Encoder) else "decoder"] = module
    encoder = coders["encoder"]
    assert isinstance(encoder, Encoder)
    parts: dict[str, list[nn.Module]] = {
        "embeddings": [coder.embedder for coder in coders.values()],
        "encoder": [],
        "decoder": [],
        "poolers": list(encoder.poolers.values()),
        "pointer": [module for module in model.modules() if isinstance(module, Pointer)],
    }
    for side, coder in coders.items():
        if isinstance(coder, Encoder):
            own = [coder.global_vectors, *coder.memory_norms.values(), *coder.upsamplers.values()]
        else:
            own = [coder.output.vocabulary if isinstance(coder.output, PointerOutput) else coder.output]
        behind = [coder.norm, *own]
        parts[side] = [*coder.layers, *(module for module in behind if module is not None)]
    if name in parts:
        if not parts[name]:
            raise UserError(f"--freeze names {name}, but the model has none.")
        return parts[name]
    match = _RANGE.fullmatch(name)
    if match is None:
        raise UserError(f"--freeze must name {_NAMES}, with commas in between, but names {name!r}.")
    side, first, last = match[1], int(match[2]), int(match[3] or match[2])
    layers = list(coders[side].layers) if side in coders else []
    if not first <= last < len(layers):
        raise UserError(f"--freeze names {name}, but the {side} has {len(layers)} layers, counted from 0.")
    return layers[first : last + 1]


class PoolingWarmup(nn.Module):
    """Shrinks what poolings by a top-k hand on, from the longest document to the configured lengths.

    All lengths are one power of two times the configured ones, and they halve together, at equal intervals: shapes
    change a few times only. From the end of the warm-up on, the model is the configured one; in evaluation it always
    is. Where a run stands follows from the number of its updates, so that a resumed run goes on exactly.

    It owns no weights. fairseq tells it the number of updates, as it does every module with `set_num_updates`.

    Args:
        model: with an encoder, whose poolings shrink.
        longest: tokens of the longest document; all are handed on at first.
        updates: of the warm-up, at least 1.

    Raises:
        UserError: no pooling has a top-k, or the weights of an attention, or a decoder, are made for shorter documents.
    """

    def __init__(self, model: nn.Module, longest: int, updates: int) -> None:
        super().__init__()
        # A tuple: the poolers are the encoder's modules, not this one's.
        self._poolers = tuple(module for module in model.modules() if isinstance(module, TopKPooler))
        if not self._poolers:
            raise UserError(f"--pooling-warmup is {updates}, but the model has no pooling by a top-k.")
        for attention in model.modules():
            if isinstance(attention, CoreAttention) and (attention.longest or longest) < longest:
                raise UserError(
                    f"--pooling-warmup lets every layer read whole documents, but `self_attention` "
                    f"{_kind(attention)} has weights for {attention.longest} of {longest} positions."
                )
        for decoder in model.modules():
            if isinstance(decoder, ConcatenatedDecoder) and decoder.longest_memory < longest:
                raise UserError(
                    f"--pooling-warmup hands whole documents of up to {longest} tokens on, but `decoder` reads at most "
                    f"{decoder.longest_memory} vectors (`longest_memory`)."
                )
        self._updates = updates
        self._halvings = max(0, *(math.ceil(math.log2(longest / pooler.k)) for pooler in self._poolers))

    def set_num_updates(self, num_updates: int) -> None:
        """Set what poolings hand on in the update that follows so many."""
        done = self._halvings * min(num_updates, self._updates) // self._updates
        for pooler in self._poolers:
            pooler.widening = 2 ** (self._halvings - done)


def _kind(attention: CoreAttention) -> str:
    return next(name for name in ATTENTION.names if ATTENTION[name] is type(attention))

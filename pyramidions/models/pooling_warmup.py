"""Lets a model get used to pooling: poolings hand on fewer and fewer vectors while it trains."""

import math

from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.nn.attention import ATTENTION, CoreAttention
from pyramidions.nn.decoder import ConcatenatedDecoder
from pyramidions.nn.pooling import TopKPooler


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

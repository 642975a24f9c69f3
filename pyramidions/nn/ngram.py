"""Keeps a decoder from repeating itself."""

import math

from torch import Tensor


def block_repeated_ngrams(log_probs: Tensor, tokens: Tensor, size: int) -> Tensor:
    """Forbid every next token that would complete an n-gram for the second time (Paulus et al. 2018, section 2.5).

    Scores (B, V) become -inf where the tokens so far, (B, T), hold the n-gram of this ``size``.
    """
    length = tokens.size(1)
    if length < size:
        return log_probs
    # (B, T) -> (B, T - n + 1, n)
    ngrams = tokens.unfold(1, size, 1)
    repeats = ngrams[..., :-1].eq(tokens[:, None, length - size + 1 :]).all(dim=-1)
    bound = log_probs.new_full(repeats.shape, math.inf).masked_fill(repeats, -math.inf)
    return log_probs.scatter_reduce(1, ngrams[..., -1], bound, "amin")

"""Selects sentences within a budget, the best ones or at random, and says how probable a selection was."""

from typing import NamedTuple

import torch
from torch import Tensor


class Selected(NamedTuple):
    """What was selected from each of N documents.

    Attributes:
        chosen: (N, U), True for a selected sentence.
        log_prob: (N,), the log-probability that `gumbel_keys` order sentences so that they are selected one after the
            other; 0 where there was nothing to select.
    """

    chosen: Tensor
    log_prob: Tensor


def gumbel_keys(scores: Tensor) -> Tensor:
    """Return keys whose order is a draw without replacement from the softmax of ``scores`` (Plackett-Luce).

    Gumbel noise is added to the scores (Yellott 1977; Kool et al. 2019, section 2.3).

    Args:
        scores: (N, U), -inf for what is never drawn.
    """
    return scores - torch.empty_like(scores).exponential_().log()


def select_by(keys: Tensor, scores: Tensor, lengths: Tensor, words: int) -> Selected:
    """Select sentences in the order of their keys; one that does not fit into what is left is passed over.

    The rule is that of `pyramidions.extract.select` with ``redundancy="none"``: where not even one sentence fits, the
    first is selected alone. As sentences that do not fit are passed over, each is drawn from the softmax over those
    that still fit.

    Args:
        keys: (N, U), the largest first; the scores themselves, or `gumbel_keys` of them.
        scores: (N, U), -inf for what is never selected.
        lengths: (N, U), words of each sentence, at least 1.
        words: the budget of a document.
    """
    open_ = scores.isfinite()
    left = torch.full_like(lengths[:, 0], words)
    fits = open_ & (lengths <= words)
    # The budget of a document without a sentence that fits is spent by its first.
    fits = torch.where(fits.any(dim=1, keepdim=True), fits, open_)
    chosen, log_prob = torch.zeros_like(open_), scores.new_zeros(len(scores))
    while bool((goes_on := fits.any(dim=1)).any()):
        # (N, U) -> (N, 1)
        best = keys.masked_fill(~fits, -torch.inf).argmax(dim=1, keepdim=True)
        # Of a document that is done, equal scores stand in: the log-sum of nothing has no gradient.
        open_scores = torch.where(fits, scores, -torch.inf).masked_fill(~goes_on[:, None], 0.0)
        drawn = (open_scores.gather(1, best) - open_scores.logsumexp(dim=1, keepdim=True)).squeeze(1)
        log_prob = log_prob + drawn.masked_fill(~goes_on, 0.0)
        newly = torch.zeros_like(open_).scatter(1, best, goes_on[:, None])
        chosen, open_ = chosen | newly, open_ & ~newly
        left = left - (lengths * newly).sum(dim=1)
        fits = open_ & (lengths <= left[:, None])
    return Selected(chosen, log_prob)

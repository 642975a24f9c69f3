"""Reinforced selection of sentences: how they are drawn within a budget, their reward on token ids, and the loss."""

from typing import NamedTuple

import torch
from torch import Tensor


class _Counts(NamedTuple):
    """N-grams of a document and its summary."""

    shared: Tensor  # (U, G), how often each unit has each n-gram of the summary
    expected: Tensor  # (G,), how often the summary has it
    sizes: Tensor  # (U,), n-grams of each unit


class OverlapReward:
    """ROUGE-1 plus weighted ROUGE-2 (F1, Lin 2004) of selected sentences against the summary, on pieces of words.

    No bigram crosses sentences. ``units`` (B, L) has the number of the sentence, below U, that each token of the
    documents, ``source`` (B, L), belongs to; ``target`` (B, T) has the summaries, and ``is_text`` (V,) is False for ids
    that are no text: padding, markers and ends.
    """

    def __init__(
        self, units: Tensor, source: Tensor, target: Tensor, is_text: Tensor, num_units: int, rouge2_weight: float
    ) -> None:
        self._weights = {1: 1.0, 2: rouge2_weight}
        self._counts = [
            {n: _count(n, *document, is_text, num_units) for n in self._weights}
            for document in zip(units, source, target, strict=True)
        ]

    def __call__(self, chosen: Tensor) -> Tensor:
        """Return the rewards (K, B), from 0 to the sum of the weights, of ``chosen`` (K, B, U): True where selected."""
        rewards = []
        for of_document, counts in zip(chosen.float().unbind(1), self._counts, strict=True):
            rewards.append(sum(weight * _f1(of_document, counts[n]) for n, weight in self._weights.items()))
        # B times (K,) -> (K, B)
        return torch.stack(rewards, dim=1)  # type: ignore[arg-type]


def _f1(chosen: Tensor, counts: _Counts) -> Tensor:
    hits = torch.minimum(chosen @ counts.shared, counts.expected).sum(dim=1)
    return 2 * hits / (chosen @ counts.sizes + counts.expected.sum()).clamp(min=1)


def _count(n: int, units: Tensor, source: Tensor, target: Tensor, is_text: Tensor, num_units: int) -> _Counts:
    found, found_units = _ngrams(n, source, is_text, units)
    distinct, expected = _ngrams(n, target, is_text, target)[0].unique(return_counts=True)
    shared = torch.zeros(num_units, len(distinct), device=source.device)
    if len(distinct):
        column = torch.searchsorted(distinct, found).clamp(max=len(distinct) - 1)
        known = distinct[column] == found
        ones = torch.ones_like(found[known], dtype=shared.dtype)
        shared.index_put_((found_units[known], column[known]), ones, accumulate=True)
    return _Counts(shared, expected.to(shared.dtype), found_units.bincount(minlength=num_units).to(shared.dtype))


def _ngrams(n: int, tokens: Tensor, is_text: Tensor, units: Tensor) -> tuple[Tensor, Tensor]:
    """Return each run of ``n`` tokens of text as a number, and the unit that it stands in."""
    keys, real = tokens[: len(tokens) - n + 1], is_text[tokens]
    whole = real[: len(keys)]
    for k in range(1, n):
        keys = keys * len(is_text) + tokens[k : k + len(keys)]
        whole = whole & real[k : k + len(keys)]
    return keys[whole], units[: len(keys)][whole]


class Selected(NamedTuple):
    """What was selected from each of N documents."""

    chosen: Tensor  # (N, U), True for a selected sentence
    # (N,), the log-probability that `gumbel_keys` order sentences so that they are selected one after the other; 0
    # where there was nothing to select.
    log_prob: Tensor


def gumbel_keys(scores: Tensor) -> Tensor:
    """Return keys whose order is a draw without replacement from the softmax of ``scores`` (Plackett-Luce).

    Gumbel noise is added to the scores (Yellott 1977; Kool et al. 2019, section 2.3).

    A score of -inf is never drawn.
    """
    return scores - torch.empty_like(scores).exponential_().log()


def select_by(keys: Tensor, scores: Tensor, lengths: Tensor, words: int) -> Selected:
    """Select sentences in the order of their keys; one that does not fit into what is left is passed over.

    The rule is that of `pyramidions.extract.select` with ``redundancy="none"``: where not even one sentence fits, the
    first is selected alone. As sentences that do not fit are passed over, each is drawn from the softmax over those
    that still fit.

    Keys are the scores (N, U), or `gumbel_keys` of them; -inf is never selected. Lengths (N, U) are words, at least 1.
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


def reinforce(log_prob: Tensor, reward: Tensor, baseline: Tensor) -> Tensor:
    """Return what has the gradient of the expected negative reward (Williams 1992), for sampled selections."""
    return -(reward - baseline).detach() * log_prob

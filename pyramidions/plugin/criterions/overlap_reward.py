"""ROUGE of selections of sentences, on token ids: one matrix product for all selections of a document."""

from typing import NamedTuple

import torch
from torch import Tensor


class _Counts(NamedTuple):
    """N-grams of a document and its summary.

    Attributes:
        shared: (U, G), how often each unit has each n-gram of the summary.
        expected: (G,), how often the summary has it.
        sizes: (U,), n-grams of each unit.
    """

    shared: Tensor
    expected: Tensor
    sizes: Tensor


class OverlapReward:
    """ROUGE-1 plus weighted ROUGE-2 (F1, Lin 2004) of selected sentences against the summary, on pieces of words.

    No bigram crosses sentences.

    Args:
        units: (B, L), the number of the sentence that each token of the documents belongs to.
        source: (B, L), token ids of the documents.
        target: (B, T), those of the summaries.
        is_text: (V,), False for ids that are no text: padding, markers and ends.
        num_units: U, more than any number in ``units``.
        rouge2_weight: of ROUGE-2.
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

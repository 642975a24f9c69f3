"""Summaries that are sampled from a `Transformer`'s probabilities."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pyramidions.nn.writer import Choose, ForcedEnd, Writer


class Sampling(Writer):
    """Samples a summary of each document, token by token, among the tokens that are probable enough.

    Of the tokens that the rules allow, the ``top_k`` most probable ones stay (Fan et al. 2018, section 5.3), and of
    those the fewest whose probabilities sum to ``top_p`` (the nucleus, Holtzman et al. 2020, section 3.1). A document's
    summary depends on its seed alone, whatever shares a batch with it.

    Args:
        min_len, max_len, length_penalty, no_repeat_ngram, eos, prefix, forced_end: as in `Writer`.
        seeds: one for each document of a batch; None numbers them from 0.
        temperature: divides logits, above 0; below 1 the probable tokens become more so.
        top_k: sample among this many tokens; 0 for all. Tokens as probable as the last of them stay, too.
        top_p: sample among the most probable tokens that have this probability together, above 0 and at most 1.
    """

    def __init__(
        self,
        min_len: int,
        max_len: int,
        length_penalty: float = 1.0,
        no_repeat_ngram: int = 0,
        eos: int | Sequence[int] = 2,
        prefix: Sequence[int] = (),
        forced_end: ForcedEnd = "counted",
        *,
        seeds: Sequence[int] | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
    ) -> None:
        super().__init__(min_len, max_len, length_penalty, no_repeat_ngram, eos, prefix, forced_end)
        if not 0 < temperature < math.inf:
            raise ValueError(f"`temperature` must be positive and finite, but is {temperature}.")
        if top_k < 0:
            raise ValueError(f"`top_k` must be at least 0, but is {top_k}.")
        if not 0 < top_p <= 1:
            raise ValueError(f"`top_p` must be above 0 and at most 1, but is {top_p}.")
        self.seeds = None if seeds is None else tuple(seeds)
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p

    @property
    def in_words(self) -> dict[str, str]:
        among = [f"the {self.top_k:,} most probable tokens"] if self.top_k else []
        among += [f"the most probable tokens that make up {self.top_p:g}"] if self.top_p < 1 else []
        return {"sampling": ", ".join([f"temperature {self.temperature:g}", *among])}

    def _choosing(self, documents: int, device: torch.device) -> Choose:
        uniform = self._uniform(documents).to(device)

        def choose(log_probs: Tensor, totals: Tensor, numbers: Tensor, step: int) -> tuple[Tensor, Tensor, Tensor]:
            token = self._sample(log_probs, uniform[:, step].index_select(0, numbers))
            rows = torch.arange(len(token), device=device)[:, None]
            return rows, token, totals + log_probs.gather(1, token)

        return choose

    def _uniform(self, documents: int) -> Tensor:
        """Return numbers from 0, below 1, for each token of each document: (B, N)."""
        seeds = range(documents) if self.seeds is None else self.seeds
        if len(seeds) != documents:
            raise ValueError(f"`seeds` must be one for each of {documents} documents, but are {len(seeds)}.")
        uniform = [
            torch.rand(self.max_len + 1, generator=torch.Generator().manual_seed(seed), device="cpu") for seed in seeds
        ]
        return torch.stack(uniform)

    def _sample(self, log_probs: Tensor, uniform: Tensor) -> Tensor:
        """Sample a token for each document: (B, V), (B,) -> (B, 1).

        Tokens are looked up in the order of the vocabulary and not of their probabilities, in which rounding, other in
        each batch, could exchange two tokens.
        """
        below = self._kept(log_probs).softmax(dim=-1, dtype=torch.float64).cumsum(dim=-1)
        tokens = torch.searchsorted(below, uniform.double()[:, None] * below[:, -1:], right=True)
        # Only where there is no number to compare with.
        return tokens.clamp(max=log_probs.size(1) - 1)

    def _kept(self, log_probs: Tensor) -> Tensor:
        """Return the logits of the tokens to sample from, -inf for others: (B, V) -> (B, V)."""
        logits = (log_probs - log_probs.amax(dim=-1, keepdim=True)) / self.temperature
        if 0 < self.top_k < logits.size(1):
            least = logits.topk(self.top_k, dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < least, -math.inf)
        if self.top_p < 1:
            probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
            beyond = probs.cumsum(dim=-1) - probs >= self.top_p
            logits = logits.masked_fill(beyond.gather(1, order.argsort(dim=-1)), -math.inf)
        return logits

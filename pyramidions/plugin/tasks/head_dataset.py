"""The head of each text, cut to a number of tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyramidions.plugin.tasks.sized_texts import SizedTexts

#: Where more than this share of all tokens is cut off, the log warns.
MUCH = 0.25


class HeadDataset(SizedTexts):
    """Texts that begin with a prefix and end in ``eos``, cut to ``max_length`` tokens so that they still do.

    Args:
        dataset: token tensors by index, which end in ``eos``, without the prefix.
        sizes: their lengths in tokens.
        max_length: most tokens to keep, prefix and ``eos`` included.
        eos: the token that ends a text.
        prefix: the tokens that begin each text.
    """

    def __init__(self, dataset: Any, sizes: np.ndarray, max_length: int, eos: int, prefix: Sequence[int] = ()) -> None:
        self.max_length = max_length
        self.eos = eos
        self.prefix = prefix
        self._full = np.asarray(sizes) + len(prefix)
        super().__init__(dataset, np.minimum(self._full, max_length))

    def __getitem__(self, index: int) -> Tensor:
        text: Tensor = self.dataset[index]
        if self.prefix:
            text = torch.cat([text.new_tensor(self.prefix), text])
        if len(text) <= self.max_length:
            return text
        return torch.cat([text[: self.max_length - 1], text.new_tensor([self.eos])])

    @property
    def longest(self) -> int:
        """Length of the longest text before the cut."""
        return int(self._full.max(initial=0))

    @property
    def lost_tokens(self) -> int:
        """How many tokens were cut off."""
        return int(self._full.sum() - self._sizes.sum())

    @property
    def lost_share(self) -> float:
        """How much of all tokens that is, 0 to 1."""
        return self.lost_tokens / max(int(self._full.sum()), 1)

    @property
    def report(self) -> str:
        """How many texts were cut, and what share of all tokens was lost."""
        cut = int((self._full > self.max_length).sum())
        return (
            f"{cut} of {len(self._full)} cut at {self.max_length} tokens "
            f"({self.lost_tokens} tokens lost, {100 * self.lost_share:.1f}%)"
        )

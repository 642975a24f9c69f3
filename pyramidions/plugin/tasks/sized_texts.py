"""Texts whose lengths are known without reading them."""

from typing import Any

import numpy as np
from fairseq.data import BaseWrapperDataset


class SizedTexts(BaseWrapperDataset):
    """One side of pairs.

    Args:
        dataset: what the texts are made of, by index.
        sizes: their lengths in tokens, at most.
    """

    def __init__(self, dataset: Any, sizes: np.ndarray) -> None:
        super().__init__(dataset)
        self._sizes = sizes

    @property
    def sizes(self) -> np.ndarray:
        """Lengths in tokens."""
        return self._sizes

    def num_tokens(self, index: int) -> int:
        """Return the length of a text."""
        return int(self._sizes[index])

    def size(self, index: int) -> int:
        """Return the length of a text."""
        return int(self._sizes[index])

"""How rare a piece is among texts: its inverse document frequency."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyramidions.scoring.encoders.embedder import Tokens


class Rarity:
    """Learns in how many texts each piece is; memory grows by the vocabulary, not by texts.

    Args:
        vocab_size: number of pieces.
    """

    def __init__(self, vocab_size: int) -> None:
        self._texts = 0
        self._with_piece = np.zeros(vocab_size, dtype=np.int64)

    def learn(self, texts: "Iterable[Tokens]") -> None:
        """Count the pieces of more texts."""
        for tokens in texts:
            self._texts += 1
            self._with_piece[np.unique(tokens.ids)] += 1

    def weights(self, tokens: "Tokens") -> np.ndarray:
        """Return log((N + 1) / (n + 1)) of each token that is in n of N texts, (tokens,)."""
        weights: np.ndarray = np.log((self._texts + 1) / (self._with_piece[tokens.ids] + 1))
        return weights

"""Sinusoidal positions."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import embedding

from pyramidions.nn.functional.sinusoids import sinusoids
from pyramidions.nn.positions.core import POSITIONS, Positions


@POSITIONS.register("sinusoidal")
class SinusoidalPositions(Positions):
    """Sinusoidal position embeddings (Vaswani et al. 2017, section 3.5), sines first, then cosines.

    Args:
        embed_dim: D, even.
        first: the number of the first position; fairseq counts from 2, PEGASUS from 0.
        frequencies: "published" for 10000 ** -(2i / D), as PEGASUS has them; "fairseq" for 10000 ** -(i / (D / 2 - 1)).

    Raises:
        ValueError: an odd ``embed_dim``.
    """

    def __init__(
        self, embed_dim: int, first: int = 2, frequencies: Literal["fairseq", "published"] = "fairseq"
    ) -> None:
        super().__init__()
        if embed_dim % 2 or embed_dim < 4:
            raise ValueError(f"`embed_dim` must be even and at least 4, but is {embed_dim}.")
        self.embed_dim = embed_dim
        self.first = first
        half = embed_dim // 2
        self._steps = half - 1 if frequencies == "fairseq" else half  # from a frequency of 1 to one of 1/10000
        # No buffer: each process grows it to its own longest document, but data-parallel training needs buffers of one
        # size.
        self._table = torch.empty(0, embed_dim)

    def _rows(self, count: int, device: torch.device) -> Tensor:
        numbers = torch.arange(self.first, self.first + count, dtype=torch.float, device="cpu")
        return sinusoids(numbers, self.embed_dim, self._steps).to(device)

    def forward(self, position: Tensor, length: int) -> Tensor:
        if length > self._table.size(0) or self._table.device != position.device:
            self._table = self._rows(max(length, 2 * self._table.size(0), 1024), position.device)
        return embedding(position, self._table)

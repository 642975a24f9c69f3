"""A memory and a target on one length axis."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.nn.sublayer import Memory


class Joined(NamedTuple):
    """The real vectors of a memory, the target right behind them, and all padding of the memory at the end.

    So a document has the same neighbours alone and in a batch, and what is causal never reads padding.

    Attributes:
        x: (B, K + T, D).
        order: (B, K + T), where each vector stood in the memory followed by the target; None where nothing moved.
        places: (B, T), where the target stands.
        length: K.
    """

    x: Tensor
    order: Tensor | None
    places: Tensor
    length: int

    @classmethod
    def of(cls, memory: Memory, target: Tensor) -> "Joined":
        """Join a memory with targets (B, T, D)."""
        x = torch.cat([memory.x, target], dim=1)
        (rows, length), count = memory.x.shape[:2], target.size(1)
        behind = torch.arange(count, device=x.device).expand(rows, -1)
        if memory.padding_mask is None:
            return cls(x, None, behind + length, length)
        padding_mask = torch.cat([memory.padding_mask, torch.zeros_like(behind, dtype=torch.bool)], dim=1)
        order = padding_mask.byte().argsort(dim=1, stable=True)
        real = (~memory.padding_mask).sum(dim=1, keepdim=True)
        return cls(_rows(x, order), order, behind + real, length)

    def target(self, x: Tensor) -> Tensor:
        """Return the target's part: (B, K + T, D) -> (B, T, D)."""
        return x[:, self.length :] if self.order is None else _rows(x, self.places)

    def memory(self, weights: Tensor) -> Tensor:
        """Return the memory's part of numbers for each vector, in its own order: (B, T, K + T) -> (B, T, K)."""
        if self.order is not None:
            weights = torch.zeros_like(weights).scatter(2, self.order[:, None].expand_as(weights), weights)
        return weights[..., : self.length]


def padded_in_front(memory: Memory) -> Memory:
    """Move the padding of a memory to the front; the rest keeps its order."""
    if memory.padding_mask is None:
        return memory
    order = (~memory.padding_mask).byte().argsort(dim=1, stable=True)
    return Memory(_rows(memory.x, order), memory.padding_mask.gather(1, order))


def _rows(x: Tensor, places: Tensor) -> Tensor:
    """(B, L, D), (B, T) -> (B, T, D)."""
    return x.gather(1, places[..., None].expand(-1, -1, x.size(2)))

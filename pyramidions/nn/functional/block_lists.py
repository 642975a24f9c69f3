"""Which blocks a block of queries sees: its neighbours, the ends of the document, and random ones."""

from typing import NamedTuple

import torch
from torch import Tensor

_BITS = 32


class BlockLists(NamedTuple):
    """Lists of blocks (Zaheer et al. 2020, section 2); they follow from the number of a document's own blocks.

    A list names no block twice; -1 stands for none.
    """

    window: int  # blocks in the window, an odd number
    ends: int  # blocks at either end of the document
    # blocks that are drawn from all others, without replacement and with equal chances, or all if there are fewer
    random: int
    seed: int  # where they come from

    @property
    def full(self) -> int:
        """The most blocks of a document whose blocks all see each other."""
        return self.window + 2 * self.ends + 2 * self.random

    def of_first(self, count: Tensor, heads: int) -> Tensor:
        """List what the first `full` blocks see: (B,) blocks of each document -> (B, H, `full`, `full`)."""
        rows = torch.arange(self.full, device=count.device)
        lists = self.of_others(count, heads, rows)
        lists = torch.cat([lists, lists.new_full((*lists.shape[:3], self.full - lists.size(3)), -1)], dim=3)
        count = count[:, None, None, None]
        return torch.where(count <= self.full, torch.where(rows < count, rows, -1), lists)

    def of_others(self, count: Tensor, heads: int, rows: Tensor) -> Tensor:
        """List what the blocks ``rows`` (N,) see that are not among the first `full`.

        (B,), blocks of each document -> (B, H, N, 2 `ends` + `window` + `random`); each head has its own random ones.
        """
        count = count[:, None, None, None]
        parts = self._ends(count), self._window(count, rows), self._random(count, heads, rows)
        return torch.cat([part.expand(len(count), heads, len(rows), -1) for part in parts], dim=3)

    def _ends(self, count: Tensor) -> Tensor:
        first = torch.arange(self.ends, device=count.device).expand(*count.shape[:3], -1)
        last = count - 1 - first
        return torch.cat([first.masked_fill(first >= count, -1), last.masked_fill(last < self.ends, -1)], dim=3)

    def _window(self, count: Tensor, rows: Tensor) -> Tensor:
        around = torch.arange(self.window, device=rows.device) - self.window // 2
        blocks = rows[:, None] + around
        return torch.where((blocks >= self.ends) & (blocks < count - self.ends), blocks, -1)

    def _random(self, count: Tensor, heads: int, rows: Tensor) -> Tensor:
        """Draw as Floyd (Bentley and Floyd 1987), so that the work does not grow with the blocks to choose from."""
        rows, side = rows[:, None], self.window // 2
        first = (rows - side).clamp(min=self.ends)
        near = (torch.minimum(rows + side, count - self.ends - 1) - first + 1).clamp(min=0)
        others = (count - 2 * self.ends).clamp(min=0) - near
        drawn = others.clamp(max=self.random)
        key = _hashed(torch.arange(heads, device=rows.device)[:, None, None] + _hashed_seed(self.seed))
        key = _hashed(key + rows)
        found = key.new_full((*others.shape[:1], heads, len(rows), self.random), -1)
        for number in range(self.random):
            # One of the first so many, or the last of them if that is taken.
            last = others - drawn + number
            choice = _hashed(key + number) * (last + 1) >> _BITS
            choice = torch.where((found == choice).any(dim=3, keepdim=True), last, choice)
            found[..., number : number + 1] = torch.where(number < drawn, choice, -1)
        # Counted among the blocks between the ends, without the window.
        blocks = found + self.ends
        return torch.where(found < 0, -1, blocks + near * (blocks >= first))


def _hashed_seed(seed: int) -> int:
    return seed * 0x9E3779B1 % 2**_BITS


def _hashed(x: Tensor) -> Tensor:
    """Map whole numbers to others below 2 ** 32 that look random, the same on all devices."""
    x = x % 2**_BITS
    for _ in range(2):
        # Below 2 ** 59: nothing overflows.
        x = ((x >> 16) ^ x) * 0x45D9F3B % 2**_BITS
    return (x >> 16) ^ x

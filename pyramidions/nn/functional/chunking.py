"""Cutting sequences into blocks, and computing on the real ones only."""

from functools import cached_property

import torch.nn.functional as F
from torch import Tensor


def pad_to_multiple(x: Tensor, multiple: int, dim: int, value: float = 0.0) -> Tensor:
    """Append ``value`` along ``dim`` until its size is a multiple of ``multiple``."""
    missing = -x.size(dim) % multiple
    if missing == 0:
        return x
    # F.pad lists (before, after) from the last dimension backwards
    widths = [0, 0] * (x.dim() - 1 - dim % x.dim()) + [0, missing]
    return F.pad(x, widths, value=value)


class BlockLayout:
    """How a padded batch is cut into blocks of ``block_size`` positions, blocks of pure padding left out.

    Where no position interacts with one outside its block (blockwise attention, everything position-wise), the
    blocks of all documents are one batch of short sequences, and those of pure padding need not exist. With
    ``block_size`` None nothing is cut, and a document is its own only block.

    Args:
        padding_mask: (B, L), True at padding.
        block_size: positions in a block, M, or None.
    """

    def __init__(self, padding_mask: Tensor, block_size: int | None) -> None:
        batch, length = padding_mask.shape
        self._batch, self._length = batch, length
        # a batch shorter than a block is one block of its own length
        self._size = length if block_size is None else min(block_size, length)
        # (B, L) -> (B * L/M, M)
        blocks = self._cut(padding_mask, True)
        self._kept: Tensor | None = None
        if self._size < length:
            real = ~blocks.all(dim=-1)
            # the first block of a document stays, so that a document of pure padding has an output too
            real.view(batch, -1)[:, 0] = True
            kept = real.nonzero().squeeze(-1)
            if kept.numel() < real.numel():
                self._kept = kept
        #: (N, M), True at padding
        self.padding_mask = blocks if self._kept is None else blocks[self._kept]

    @cached_property
    def attention_mask(self) -> Tensor | None:
        """`padding_mask`, or None where nothing is padding: attention without a mask has faster kernels."""
        return self.padding_mask if self.padding_mask.any() else None

    def _cut(self, x: Tensor, value: float) -> Tensor:
        x = pad_to_multiple(x, self._size, dim=1, value=value)
        return x.reshape(-1, self._size, *x.shape[2:])

    def pack(self, x: Tensor) -> Tensor:
        """Return the real blocks of ``x``: (B, L, ...) -> (N, M, ...)."""
        blocks = self._cut(x, 0)
        return blocks if self._kept is None else blocks.index_select(0, self._kept)

    def unpack(self, x: Tensor) -> Tensor:
        """Undo `pack`, with zeros where blocks were left out: (N, M, ...) -> (B, L, ...)."""
        if self._kept is not None:
            count = self._batch * -(-self._length // self._size)
            x = x.new_zeros(count, *x.shape[1:]).index_copy(0, self._kept, x)
        return x.reshape(self._batch, -1, *x.shape[2:])[:, : self._length]

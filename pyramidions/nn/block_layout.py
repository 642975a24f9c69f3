"""Cuts a padded batch into blocks, and computes on the real ones only."""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from pyramidions.nn.functional.chunking import pad_to_multiple
from pyramidions.nn.functional.kernels import on_device


class BlockLayout:
    """How a padded batch is cut into blocks of ``block_size`` M positions, blocks of pure padding left out.

    Where no position interacts with one outside its block (blockwise attention, everything position-wise), the blocks
    of all documents are one batch of short sequences, and those of pure padding need not exist. With ``block_size``
    None nothing is cut, and a document is its own only block.

    The ``lengths`` of documents, B numbers, are known where padding comes after all that is real. None asks the mask,
    so that the host waits for a GPU.
    """

    def __init__(self, padding_mask: Tensor, block_size: int | None, lengths: Sequence[int] | None = None) -> None:
        batch, length = padding_mask.shape
        self._batch, self._length = batch, length
        # a batch shorter than a block is one block of its own length
        self._size = length if block_size is None else min(block_size, length)
        # (B, L) -> (B * L/M, M)
        blocks = self._cut(padding_mask, True)
        self._kept: Tensor | None = None
        if self._size < length:
            kept = _with_content(blocks, batch) if lengths is None else self._holding(lengths, blocks.device)
            if kept.numel() < len(blocks):
                self._kept = kept
        #: (N, M), True at padding
        self.padding_mask = blocks if self._kept is None else blocks.index_select(0, self._kept)
        self._real = None if lengths is None else sum(lengths)

    @cached_property
    def attention_mask(self) -> Tensor | None:
        """`padding_mask`, or None where nothing is padding: attention without a mask has faster kernels."""
        padded = self.padding_mask.any() if self._real is None else self._real < self.padding_mask.numel()
        return self.padding_mask if padded else None

    def _holding(self, lengths: Sequence[int], device: torch.device) -> Tensor:
        """Return the blocks that hold something of documents of these ``lengths``, of each at least the first."""
        each = -(-self._length // self._size)
        held = [max(1, -(-length // self._size)) for length in lengths]
        return on_device([row * each + block for row, count in enumerate(held) for block in range(count)], device)

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


def _with_content(blocks: Tensor, batch: int) -> Tensor:
    """Return which of ``blocks`` (B * L/M, M), True at padding, hold something, and the first of each document."""
    real = ~blocks.all(dim=-1)
    # a document of pure padding has an output too
    real.view(batch, -1)[:, 0] = True
    return real.nonzero().squeeze(-1)


def lengths_of(padding_mask: Tensor) -> list[int] | None:
    """Return how many positions of each document are real; None where padding (B, L) stands before any of them.

    The host waits for a GPU here, once.
    """
    real = ~padding_mask
    late = (padding_mask[:, :-1] & real[:, 1:]).any()
    *lengths, is_late = torch.cat([real.sum(dim=1), late.view(1)]).tolist()
    return None if is_late else lengths

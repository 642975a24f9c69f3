"""Blockwise attention: full attention within blocks that do not overlap."""

import torch
from torch import Tensor

from pyramidions.nn.attention.core import ATTENTION, CoreAttention
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.chunking import pad_to_multiple


@ATTENTION.register("blockwise")
class BlockwiseAttention(CoreAttention):
    """Full attention within blocks of fixed length (Pietruszka et al. 2022, section 3.1).

    Args:
        block_size: positions in a block, M; window and stride at once.
        dropout: probability of dropping an attention weight while training.

    Raises:
        ValueError: a block size below 1.
    """

    crosses = False
    lengths = ("block_size",)

    def __init__(self, block_size: int = 512, dropout: float = 0.0) -> None:
        super().__init__()
        if block_size < 1:
            raise ValueError(f"`block_size` must be at least 1, but is {block_size}.")
        self.block_size = self.confined_to = block_size
        self.within = FullAttention(dropout)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        key_padding_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        batch, heads, length, dim = q.shape
        self.refuse(q, k, is_causal)
        size = min(self.block_size, length)
        if length == size:
            return self.within(q, k, v, key_padding_mask, is_causal=is_causal)
        if key_padding_mask is None and length % size:
            key_padding_mask = q.new_zeros(batch, length).bool()
        mask = None if key_padding_mask is None else _cut_mask(key_padding_mask, size)
        out = self.within(_cut(q, size), _cut(k, size), _cut(v, size), mask, is_causal=is_causal)
        # (B * L/M, H, M, E) -> (B, H, L, E)
        return out.unflatten(0, (batch, -1)).transpose(1, 2).reshape(batch, heads, -1, dim)[:, :, :length]

    def across(self) -> CoreAttention:
        return self.within

    def received(self, q: Tensor, k: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        batch, length = k.size(0), k.size(2)
        if padding_mask is None:
            padding_mask = torch.zeros(batch, length, dtype=torch.bool, device=k.device)
        size = min(self.block_size, length)
        total = self.within.received(_cut(q, size), _cut(k, size), _cut_mask(padding_mask, size))
        # (B * L/M, M) -> (B, L)
        return total.reshape(batch, -1)[:, :length]


def _cut(x: Tensor, size: int) -> Tensor:
    # (B, H, L, E) -> (B, L/M, H, M, E) -> (B * L/M, H, M, E)
    return pad_to_multiple(x, size, dim=2).unflatten(2, (-1, size)).transpose(1, 2).flatten(0, 1)


def _cut_mask(padding_mask: Tensor, size: int) -> Tensor:
    # (B, L) -> (B * L/M, M)
    return pad_to_multiple(padding_mask, size, dim=1, value=True).reshape(-1, size)

"""Buckets of LSH attention, position by position after the definition."""

import math

import torch
from torch import Tensor

from pyramidions.nn.attention import LSHAttention
from pyramidions.nn.sublayer import LayerContext


def hashed(q: Tensor, attention: LSHAttention, half: int) -> list[list[int]]:
    """Return the bucket of each position of one head in each round, of twice ``half``: (L, E) -> R lists of L."""
    factors = [half]
    if attention.hash_factors == 2:
        factors = [math.ceil(math.sqrt(half / 2))]
        factors.append(0 if factors[0] >= half else math.ceil(half / factors[0] / 2))
    rotations = attention.rotations(q.size(1), max(factors), q.device)
    rounds = []
    for number in range(attention.num_hashes):
        found = torch.zeros(len(q), dtype=torch.long)
        for factor, columns in enumerate(factors):
            turned = q @ rotations[number * len(factors) + factor, :, :columns]
            if columns:
                found = found * 2 * columns + torch.cat([turned, -turned], dim=1).argmax(dim=1)
        rounds.append(found.tolist())
    return rounds


def saved_bytes(attention: LSHAttention, length: int, is_causal: bool = False) -> int:
    """Return the bytes that a forward pass keeps for the backward pass, each storage once."""
    q, v = (torch.randn(1, 2, length, 8, requires_grad=True) for _ in range(2))
    storages: dict[int, int] = {}
    kept = []

    def pack(x: Tensor) -> Tensor:
        kept.append(x)  # or another tensor may come to the same address
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        attention(q, q, v, LayerContext(is_causal=is_causal))
    return sum(storages.values())

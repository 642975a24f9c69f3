"""Buckets of LSH attention, position by position after the definition."""

import math

import torch
from torch import Tensor

from pyramidions.nn.attention import LSHAttention


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

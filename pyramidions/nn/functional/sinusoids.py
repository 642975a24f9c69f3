"""Sines and cosines of positions or distances."""

import math

import torch
from torch import Tensor


def sinusoids(numbers: Tensor, embed_dim: int, steps: int) -> Tensor:
    """Return sines, then cosines of each number (Vaswani et al. 2017, section 3.5): (N,) -> (N, D).

    Args:
        numbers: positions or distances.
        embed_dim: D, even.
        steps: from a frequency of 1 to one of 1/10000.
    """
    # In float64 up to here: the last digit of an exponential differs from processor to processor, and position 1,000
    # would multiply it.
    half = torch.arange(embed_dim // 2, dtype=torch.float64, device=numbers.device)
    frequencies = torch.exp(half * -(math.log(10000) / steps)).float()
    angle = numbers[:, None] * frequencies
    return torch.cat([angle.sin(), angle.cos()], dim=1)

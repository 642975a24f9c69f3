"""Sines and cosines of positions or distances."""

import math

import torch
from torch import Tensor


def sinusoids(numbers: Tensor, embed_dim: int, steps: int) -> Tensor:
    """Return sines, then cosines of each number (Vaswani et al. 2017, section 3.5): (N,) -> (N, D), D even.

    Frequencies fall from 1 to 1/10000 in so many ``steps``.
    """
    # By Python, in double precision: the last digit of torch's exponential differs from processor to processor, and
    # position 1,000 would multiply it.
    powers = [math.exp(-step * math.log(10000) / steps) for step in range(embed_dim // 2)]
    frequencies = torch.tensor(powers, dtype=torch.float, device=numbers.device)
    angle = numbers[:, None] * frequencies
    return torch.cat([angle.sin(), angle.cos()], dim=1)

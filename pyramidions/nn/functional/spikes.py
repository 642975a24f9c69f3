"""Where a series of numbers rises above those before."""

import torch
from torch import Tensor


def spikes(x: Tensor, window: int) -> Tensor:
    """Return which numbers are above each of the ``window`` before: (B, L) -> (B, L).

    An equal one is not above. The first number, which none precede, is a spike.
    """
    found = torch.ones_like(x, dtype=torch.bool)
    for back in range(1, window + 1):
        found[:, back:] &= x[:, back:] > x[:, :-back]
    return found

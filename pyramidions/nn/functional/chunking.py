"""Padding to a multiple of a length."""

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

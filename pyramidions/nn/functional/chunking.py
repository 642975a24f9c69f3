"""Chunks of one length, and their neighbours."""

import torch
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


def chunked(x: Tensor, size: int, dim: int, value: float = 0.0) -> Tensor:
    """Cut ``dim`` into chunks, the last one filled with ``value``: (..., L, ...) -> (..., C, M, ...)."""
    return pad_to_multiple(x, size, dim, value).unflatten(dim, (-1, size))


def look_around(x: Tensor, value: float | bool = 0.0, chunks: int = -3) -> Tensor:
    """Join every chunk with the one before and the one after: (..., C, M, E) -> (..., C, 3M, E).

    Before the first and after the last chunk stands ``value``; ``chunks`` is the dimension C, counted from the end.
    """
    return torch.cat([_shifted(x, 1, value, chunks), x, _shifted(x, -1, value, chunks)], dim=-2)


def look_back(x: Tensor, value: float | bool = 0.0, chunks: int = -3) -> Tensor:
    """Join every chunk with the one before: (..., C, M, E) -> (..., C, 2M, E); arguments as in `look_around`."""
    return torch.cat([_shifted(x, 1, value, chunks), x], dim=-2)


def _shifted(x: Tensor, by: int, value: float | bool, chunks: int) -> Tensor:
    # F.pad with a negative width crops: chunks move by one place
    return F.pad(x, [0, 0] * (-chunks - 1) + [by, -by], value=value)

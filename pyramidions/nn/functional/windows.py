"""Pooling over windows of fixed length: no scores, no weights to learn."""

import torch
from torch import Tensor

from pyramidions.nn.functional.chunking import pad_to_multiple


def window_mask(padding_mask: Tensor, window: int) -> Tensor:
    """Return which windows hold no real position: (B, L) -> (B, L/W)."""
    return pad_to_multiple(padding_mask, window, dim=1, value=True).unflatten(1, (-1, window)).all(dim=-1)


def window_mean(x: Tensor, padding_mask: Tensor, window: int) -> Tensor:
    """Return the mean of the real positions of each window, zero where there is none: (B, L, D) -> (B, L/W, D)."""
    real = pad_to_multiple(~padding_mask, window, dim=1, value=False).unflatten(1, (-1, window))[..., None]
    # (B, L, D) -> (B, L/W, W, D)
    windows = pad_to_multiple(x, window, dim=1).unflatten(1, (-1, window)).masked_fill(~real, 0.0)
    return windows.sum(dim=2) / real.sum(dim=2).clamp(min=1).to(x.dtype)


def window_max(x: Tensor, padding_mask: Tensor, window: int) -> Tensor:
    """Return the largest real value of each window, zero where there is none: (B, L, D) -> (B, L/W, D)."""
    blocked = pad_to_multiple(padding_mask, window, dim=1, value=True).unflatten(1, (-1, window))[..., None]
    # (B, L, D) -> (B, L/W, W, D)
    windows = pad_to_multiple(x, window, dim=1).unflatten(1, (-1, window)).masked_fill(blocked, -torch.inf)
    return windows.amax(dim=2).masked_fill(blocked.all(dim=2), 0.0)

"""Attention within a window, computed chunk by chunk."""

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.functional.attention import scaled_dot_product_attention
from pyramidions.nn.functional.chunking import pad_to_multiple


def look_around(x: Tensor, value: float | bool = 0.0, chunks: int = -3) -> Tensor:
    """Join every chunk with the one before and the one after: (..., C, M, E) -> (..., C, 3M, E).

    Before the first and after the last chunk stands ``value``; ``chunks`` is the dimension C, counted from the end.
    """
    return torch.cat([_shifted(x, 1, value, chunks), x, _shifted(x, -1, value, chunks)], dim=-2)


def look_back(x: Tensor, value: float | bool = 0.0) -> Tensor:
    """Join every chunk with the one before: (..., C, M, E) -> (..., C, 2M, E); ``value`` before the first."""
    return torch.cat([_shifted(x, 1, value, -3), x], dim=-2)


def _shifted(x: Tensor, by: int, value: float | bool, chunks: int) -> Tensor:
    # F.pad with a negative width crops: chunks move by one place
    return F.pad(x, [0, 0] * (-chunks - 1) + [by, -by], value=value)


def local_window_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    padding_mask: Tensor,
    window: int,
    dropout: float = 0.0,
    *,
    sees_itself: bool = True,
) -> Tensor:
    """Attend to the keys at most ``window`` positions away (Rae and Razavi 2020; Beltagy et al. 2020, section 3.1).

    Memory grows linearly with the length: chunks of ``window`` positions see themselves and their neighbours.

    Args:
        q: (B, H, L, E).
        k: (B, H, L, E).
        v: (B, H, L, E).
        padding_mask: (B, L), True at padding.
        window: how far a query sees in either direction, at least 1.
        dropout: probability of dropping an attention weight.
        sees_itself: a query sees its own position; without, it does only where it sees nothing else.

    Returns:
        (B, H, L, E).
    """
    batch, _, length, _ = q.shape

    def chunked(x: Tensor) -> Tensor:
        # (B, H, L, E) -> (B, C, H, M, E)
        return pad_to_multiple(x, window, dim=2).unflatten(2, (-1, window)).transpose(1, 2)

    # (B, C, H, M, E) -> (B, C, H, 3M, E)
    keys, values = (look_around(chunked(x), chunks=-4) for x in (k, v))
    blocked = pad_to_multiple(padding_mask, window, dim=1, value=True).unflatten(1, (-1, window))[..., None]
    # (B, C, M, 1) -> (B, C, 1, 3M)
    blocked = look_around(blocked, value=True).transpose(2, 3)
    distance = torch.arange(3 * window, device=q.device) - window
    distance = distance - torch.arange(window, device=q.device)[:, None]  # key minus query, (M, 3M)
    near = distance.abs() <= window
    allowed = (near if sees_itself else near & (distance != 0)) & ~blocked
    # A query that sees nothing sees its own position: where that is padding, nobody reads the result.
    allowed = allowed | ((distance == 0) & ~allowed.any(dim=-1, keepdim=True))
    # (B, C, H, M, E) -> (BC, H, M, E), and (B, C, M, 3M) -> (BC, 1, M, 3M): fused kernels know no fifth dimension.
    queries, keys, values = (x.flatten(0, 1) for x in (chunked(q), keys, values))
    out = scaled_dot_product_attention(queries, keys, values, allowed.flatten(0, 1)[:, None], dropout)
    # (BC, H, M, E) -> (BC, M, H, E) -> (B, CM, H, E) -> (B, H, L, E)
    return out.transpose(1, 2).unflatten(0, (batch, -1)).flatten(1, 2).transpose(1, 2)[:, :, :length]

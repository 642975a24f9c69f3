"""Masks: from "True at padding" to what attention and pooling need."""

import torch
from torch import Tensor


def attendable(
    key_padding_mask: Tensor | None, is_causal: bool, query_length: int, key_length: int, device: torch.device
) -> Tensor | None:
    """Return which keys each query may attend to, as `scaled_dot_product_attention` wants it; None for all.

    A row without any real key may attend to all keys: its output is never read, and a softmax over nothing
    would be NaN and poison the gradients of the whole batch.

    Args:
        key_padding_mask: (B, Lk), True at padding, or None; or (B, Lq, Lk), True at what a query must not see.
        is_causal: query i sees keys up to i, counted so that the last query sees every key.
    """
    allowed = None
    if key_padding_mask is not None:
        empty = key_padding_mask.all(dim=-1, keepdim=True)
        # (B, Lk) -> (B, 1, 1, Lk), or (B, Lq, Lk) -> (B, 1, Lq, Lk)
        allowed = (~key_padding_mask | empty).unflatten(0, (-1, *[1] * (4 - key_padding_mask.dim())))
    if is_causal:
        past = torch.ones(query_length, key_length, dtype=torch.bool, device=device)
        past = past.tril(diagonal=key_length - query_length)[None, None]
        allowed = past if allowed is None else past & allowed
    return allowed


def as_bias(blocked_mask: Tensor, like: Tensor) -> Tensor:
    """Return what attention adds to its scores: -inf where ``blocked_mask``, 0 elsewhere.

    (B, Lk), or (B, Lq, Lk), with no row all True -> (B, 1, 1, Lk), or (B, 1, Lq, Lk). That is what kernels of a GPU
    read; made once, it serves all layers. Its rows begin at multiples of 16 values, as those kernels want them. It has
    the type of ``like``, or under autocast that of what queries are then.
    """
    kind, keys = like.device.type, blocked_mask.size(-1)
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else like.dtype
    # (B, Lk) -> (B, 1, 1, Lk), or (B, Lq, Lk) -> (B, 1, Lq, Lk)
    blocked_mask = blocked_mask.unflatten(0, (-1, *[1] * (4 - blocked_mask.dim())))
    room = blocked_mask.new_zeros(*blocked_mask.shape[:-1], -(-keys // 16) * 16, dtype=dtype)
    return room[..., :keys].masked_fill_(blocked_mask, -torch.inf)


def distances_back(blocked: Tensor | None, k: Tensor) -> Tensor:
    """Return how far new positions are from the written ones that they see, in positions of their own hypothesis.

    Given the `as_bias` (B, 1, T, S) of written positions, those of other hypotheses and later ones hidden, or None for
    one hypothesis with one new position, and all keys (B, H, S, E) -> (B, 1, T, S), meaningless where ``blocked``.
    """
    if blocked is None:
        return torch.arange(k.size(2) - 1, -1, -1, device=k.device)[None, None, None]
    # Between a position and an earlier one of its own hypothesis stand those that it sees.
    seen = (blocked == 0).long()
    return seen.sum(dim=-1, keepdim=True) - seen.cumsum(dim=-1)


def padding_of(k: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Return the padding mask of keys (B, H, L, E): the given one, or for None no padding. (B, L)."""
    if padding_mask is None:
        return torch.zeros(k.size(0), k.size(2), dtype=torch.bool, device=k.device)
    return padding_mask


def flush_right_padding(tokens: Tensor, padding_idx: int) -> Tensor:
    """Return ``tokens`` (B, L) with every row's padding moved behind its real tokens, their order kept."""
    order = tokens.eq(padding_idx).to(torch.uint8).argsort(dim=-1, stable=True)
    return tokens.gather(-1, order)

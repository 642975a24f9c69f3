"""Attention among positions that hash alike: chunks of sorted ones, or the most recent of a bucket."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.functional.chunking import chunked, look_around, look_back
from pyramidions.nn.functional.dropout import drop


def chunk_attention(
    q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor, size: int, dropout: float, after: int = 0
) -> tuple[Tensor, Tensor]:
    """Attend from chunks of ``size`` positions to themselves, the one before, and ``after`` (0 or 1) behind.

    Returns:
        (B, H, L, E) mixed values, and (B, H, L, 1) the log-sum-exp of the scores.
    """
    # (B, H, L, E) -> (B, H, C, M, E)
    queries, keys, values = (chunked(x, size, dim=2) for x in (q, k, v))
    # (B, L) -> (B, 1, C, M, 1)
    blocked = padding_mask.unflatten(1, (-1, size))[:, None, ..., None]
    own = torch.eye(size, dtype=torch.bool, device=q.device)
    if q.size(2) > size:
        # (B, H, C, M, .) -> (B, H, C, 2M, .), or 3M; (M, M) -> (M, 2M), or 3M
        look = look_around if after else look_back
        keys, values, blocked = look(keys), look(values), look(blocked, value=True)
        own = F.pad(own, (size, after * size))
    out, total = attend(queries, keys, values, own, blocked.transpose(-1, -2), dropout)
    # (B, H, C, M, .) -> (B, H, L, .)
    return out.flatten(2, 3), total.flatten(2, 3)


def recent_attention(
    q: Tensor, k: Tensor, v: Tensor, buckets: Tensor, reach: int, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Attend from each position to the ``reach`` positions before it in its bucket (B, H, L).

    A position sees itself only where it sees nothing else. Positions are sorted by bucket, and chunks of ``reach`` meet
    themselves and the one before, so that memory grows linearly with the length. Where chunks begin makes no
    difference.

    Returns:
        (B, H, L, E) mixed values, and (B, H, L, 1) the log-sum-exp of the scores, lower than that of any finite score
        where a position sees only itself.
    """
    length = q.size(2)
    size = min(reach, length)
    # (B, H, L), what is n-th; a stable sort keeps a bucket in the order of the text
    order = buckets.argsort(dim=-1, stable=True)
    place = torch.arange(length, device=q.device)
    in_order = buckets.gather(-1, order)
    begins = F.pad(in_order[..., 1:] != in_order[..., :-1], (1, 0), value=True)
    # (B, H, L), the place of the first key that each place sees
    first = torch.maximum(torch.where(begins, place, 0).cummax(dim=-1).values, place - reach)
    queries, keys, values = (chunked(take(x, order), size, dim=2) for x in (q, k / q.size(-1) ** 0.5, v))
    # (B, H, L) -> (B, H, C, M, 1)
    first = chunked(first[..., None], size, dim=2)
    query = torch.arange(first.size(2) * size, device=q.device).view(-1, size, 1)
    # (C, M, 2M), as the keys stand after `look_back`
    key = query[:, :1] + torch.arange(-size, size, device=q.device)
    out, total = attend(
        queries, look_back(keys), look_back(values), key == query, (key < first) | (key > query), dropout
    )
    where = order.argsort(dim=-1)
    # (B, H, C, M, .) -> (B, H, L, .)
    out, total = (take(x.flatten(2, 3)[:, :, :length], where) for x in (out, total))
    return out, total


def times_seen(buckets: Tensor, visible: Tensor, reach: int) -> Tensor:
    """Count in how many rounds of hashing queries see keys in `recent_attention`, of the last keys as queries.

    Args:
        buckets: (B, H, S, R), of the keys, in R rounds.
        visible: (B, 1, Lq, S), True at the keys before a query and at its own; the others do not count.
        reach: as there.
    """
    count = visible.size(2)
    total = torch.zeros(*buckets.shape[:2], count, buckets.size(2), dtype=torch.int32, device=buckets.device)
    for of_round in buckets.unbind(dim=-1):
        alike = visible & (of_round[:, :, -count:, None] == of_round[:, :, None])
        # How far back a key stands in the bucket: 0 for the query's own.
        back = alike.sum(dim=-1, keepdim=True) - alike.cumsum(dim=-1)
        total += alike & (back >= 1) & (back <= reach)
    return total


def joined(outputs: Sequence[Tensor], totals: Sequence[Tensor]) -> Tensor:
    """Join what rounds mixed, (B, H, L, E) each, by the log-sum-exp of their scores, (B, H, L, 1)."""
    # (R, B, H, L, 1), over the rounds
    weights = torch.stack(tuple(totals)).softmax(dim=0)
    return (weights * torch.stack(tuple(outputs))).sum(dim=0)


def attend(
    q: Tensor, k: Tensor, v: Tensor, own: Tensor, blocked: Tensor, dropout: float = 0.0, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Attend to a query's own position only where it sees no other: (..., Lq, E), (..., Lk, E) twice.

    Args:
        own: broadcastable to (..., Lq, Lk), True where the key is the query's own.
        blocked: likewise, True at keys that a query must not see.
        bias: likewise, is added to the scores, or None.

    Returns:
        (..., Lq, E) mixed values, and (..., Lq, 1) the log-sum-exp of the scores in float32.
    """
    lowest = torch.finfo(torch.float32).min
    # (..., Lq, E) @ (..., E, Lk) -> (..., Lq, Lk)
    scores = (q @ k.transpose(-1, -2)).float()
    scores = scores if bias is None else scores + bias
    # Its own position comes after every other, what is blocked after that; finite, for both may be all there is.
    scores = scores.masked_fill(own, lowest / 2).masked_fill(blocked, lowest)
    weights = drop(scores.softmax(dim=-1), dropout)
    return weights.to(v.dtype) @ v, scores.logsumexp(dim=-1, keepdim=True)


def take(x: Tensor, index: Tensor) -> Tensor:
    """Return the positions ``index``: (B, H, L, .), (B, H, L') -> (B, H, L', .)."""
    return x.gather(2, index[..., None].expand(*index.shape, x.size(-1)))

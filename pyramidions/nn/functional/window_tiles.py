"""Attention within a window on the CPU: a few rows at a time beside the keys that they see, all in its caches."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.nn.functional.attention import attention_gradients, full_precision, mix
from pyramidions.nn.functional.dropout import bernoulli_samples

_ROWS = 64  # queries of a tile: more of them see more keys in vain, fewer multiply smaller matrices
_WEIGHTS = 2**19  # in memory at a time


class Windowed(NamedTuple):
    """What attention within a window is computed from, in the order of the operator's arguments.

    Attributes:
        q: (B, H, L, E).
        k: (B, H, L, E).
        v: (B, H, L, E).
        further_k: (B, H, G, E), of keys that every query sees.
        further_v: (B, H, G, E).
        absent: (B, G), True where a document has no such key.
        hidden: (B, L), True at keys that no window shows.
        window: how far a query sees in either direction.
        dropout: probability of dropping an attention weight.
        sees_itself: a query sees its own position; without, it does only where it sees nothing else.
        seed: of dropout.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    further_k: Tensor
    further_v: Tensor
    absent: Tensor
    hidden: Tensor
    window: int
    dropout: float
    sees_itself: bool
    seed: int


class _Tile(NamedTuple):
    heads: tuple[int, slice]  # of one document
    rows: slice  # queries
    span: slice  # keys that the first or last of them sees
    bias: Tensor  # (M, S + G), -inf at what a row must not see
    dropped: Tensor | None  # (H', M, S + G)
    scale: float  # of weights that are not dropped


def _tiles(
    q: Tensor, absent: Tensor, hidden: Tensor, window: int, dropout: float, sees_itself: bool, seed: int
) -> Iterator[_Tile]:
    """Cut the band of weights; the same seed draws the same samples."""
    batch, heads, length, _ = q.shape
    further = absent.size(1)
    generator = torch.Generator("cpu").manual_seed(seed)
    numbers = torch.arange(-window, _ROWS + window, device=q.device)
    distance = numbers - torch.arange(_ROWS, device=q.device)[:, None]
    far = distance.abs() > window
    like = full_precision(q[:0])
    band, keys_hidden, further_hidden = (
        like.new_zeros(blocked.shape).masked_fill(blocked, -torch.inf)
        for blocked in (far if sees_itself else far | (distance == 0), hidden, absent)
    )
    # A GPU is not waited for.
    some_hidden = hidden.any(dim=1).tolist() if hidden.device.type == "cpu" else [True] * batch
    together = max(1, min(heads, _WEIGHTS // (_ROWS * (_ROWS + 2 * window + further))))
    for document in range(batch):
        for start in range(0, length, _ROWS):
            rows = slice(start, min(length, start + _ROWS))
            span = slice(max(0, start - window), min(length, rows.stop + window))
            first, count = span.start - start + window, rows.stop - start
            bias = band[:count, first : first + span.stop - span.start]
            if some_hidden[document]:
                bias = bias + keys_hidden[document, span]
            if further:
                bias = torch.cat([bias, further_hidden[document].expand(count, -1)], dim=1)
            if some_hidden[document] or not sees_itself:
                bias = _seeing_something(bias, start - span.start)
            for head in range(0, heads, together):
                which = slice(head, min(heads, head + together))
                dropped, scale = None, 1.0
                if dropout:
                    shape = torch.Size((which.stop - head, *bias.shape))
                    dropped, scale = bernoulli_samples(shape, dropout, generator)
                yield _Tile((document, which), rows, span, bias, dropped, scale)


def _seeing_something(bias: Tensor, own: int) -> Tensor:
    """Let a row that sees nothing see its own position, which for the first row is the key ``own``."""
    rows, keys = (torch.arange(count, device=bias.device) for count in bias.shape)
    empty = bias.amax(dim=1, keepdim=True).eq(-torch.inf)
    return bias.masked_fill(empty & (keys == rows[:, None] + own), 0.0)


def _seen(tile: _Tile, x: Tensor, further: Tensor) -> Tensor:
    """Return what a tile's rows see: of (B, H, L, E) and (B, H, G, E), (H', S + G, E)."""
    near = full_precision(x[tile.heads][:, tile.span])
    return torch.cat([near, full_precision(further[tile.heads])], dim=1) if further.size(2) else near


def attend_in_tiles(given: Windowed) -> Tensor:
    """Attend as `local_window_attention`."""
    q, k, v, further_k, further_v, absent, hidden, window, dropout, sees_itself, seed = given
    out = torch.empty_like(q)
    with torch.autocast("cpu", enabled=False):
        for tile in _tiles(q, absent, hidden, window, dropout, sees_itself, seed):
            rows = full_precision(q[tile.heads][:, tile.rows])
            weights = _weights(rows, _seen(tile, k, further_k), tile.bias)
            out[tile.heads][:, tile.rows] = mix(weights, tile.dropped, tile.scale, _seen(tile, v, further_v))
    return out


def _weights(rows: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """(H, M, E), (H, S, E) -> (H, M, S)."""
    return ((rows * rows.size(-1) ** -0.5) @ keys.transpose(-1, -2)).add_(bias).softmax(dim=-1)


def gradients_in_tiles(grad: Tensor, given: Windowed) -> tuple[Tensor, ...]:
    """Return the gradients of q, k, v and the further keys and values."""
    q, k, v, further_k, further_v, absent, hidden, window, dropout, sees_itself, seed = given
    grad_q = torch.empty_like(q)
    sums = [torch.zeros_like(full_precision(x)) for x in (k, v, further_k, further_v)]
    grad_k, grad_v, grad_further_k, grad_further_v = sums
    with torch.autocast("cpu", enabled=False):
        for tile in _tiles(q, absent, hidden, window, dropout, sees_itself, seed):
            rows, keys = full_precision(q[tile.heads][:, tile.rows]), _seen(tile, k, further_k)
            of_out = full_precision(grad[tile.heads][:, tile.rows])
            weights = _weights(rows, keys, tile.bias)
            of_q, of_k, of_v = attention_gradients(
                weights, tile.dropped, tile.scale, rows, keys, _seen(tile, v, further_v), of_out
            )
            grad_q[tile.heads][:, tile.rows] = of_q
            near = tile.span.stop - tile.span.start
            for near_sum, further_sum, new in ((grad_k, grad_further_k, of_k), (grad_v, grad_further_v, of_v)):
                near_sum[tile.heads][:, tile.span] += new[:, :near]
                further_sum[tile.heads] += new[:, near:]
    return grad_q, *(total.to(x.dtype) for total, x in zip(sums, (k, v, further_k, further_v), strict=True))


def received_in_tiles(
    q: Tensor, k: Tensor, further_k: Tensor, absent: Tensor, hidden: Tensor, left_out: Tensor, window: int
) -> tuple[Tensor, Tensor]:
    """Return as `received_in_window`, on any device."""
    near, far = (torch.zeros(mask.shape, dtype=torch.float32, device=k.device) for mask in (hidden, absent))
    for tile in _tiles(q, absent, hidden, window, 0.0, True, 0):
        rows = full_precision(q[tile.heads][:, tile.rows])
        weights = _weights(rows, _seen(tile, k, further_k), tile.bias)
        document = tile.heads[0]
        total = weights.masked_fill_(left_out[document, tile.rows, None], 0.0).sum(dim=(0, 1))
        count = tile.span.stop - tile.span.start
        near[document, tile.span] += total[:count]
        far[document] += total[count:]
    return near, far

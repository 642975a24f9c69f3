"""Scaled dot-product attention that never holds the whole matrix of weights, not even with dropout."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyramidions.nn.functional.dropout import bernoulli_samples, draws_bernoulli, new_seed

_TILE = 2**19  # weights that are in memory at a time


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, dropout: float = 0.0, *, is_causal: bool = False
) -> Tensor:
    """Attend (Vaswani et al. 2017, section 3.2.1).

    torch's own kernels do it, but for one case: on the CPU, attention dropout sends torch down a path that holds every
    weight several times. There the weights are computed tile by tile, and again in the backward pass (Dao et al. 2022,
    section 3.1, without their running softmax: a tile spans all keys), in float32 or better.

    Args:
        q: (..., Lq, E).
        k: (..., Lk, E).
        v: (..., Lk, E).
        allowed: broadcastable to (..., Lq, Lk), True where attention is allowed, somewhere in each row, or what
            `as_bias` makes of it; or None.
        dropout: probability of dropping a weight.
        is_causal: query i sees keys up to i; as many keys as queries, and no ``allowed``.

    Returns:
        (..., Lq, E).
    """
    nothing = not (q.numel() and k.numel())
    if dropout == 0.0 or nothing or not draws_bernoulli(q):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=is_causal)
    if is_causal:
        allowed = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool, device=q.device).tril()
    # A seed, instead of a mask that is as large as the matrix of weights.
    seed = new_seed()
    if allowed is not None:
        allowed = allowed if allowed.dtype == torch.bool else allowed.eq(0.0)
        allowed = allowed.expand(*q.shape[:-2], *allowed.shape[-2:])
    return _TiledAttention.apply(q, k, v, allowed, dropout, seed)


Index = tuple[Any, ...]


class _Tile(NamedTuple):
    keys: Index  # (..., Lk, E) -> (..., Lk, E)
    queries: Index  # (..., Lq, E) -> (..., Lq', E)
    first: bool  # of those with the same keys
    blocked: Tensor | None  # broadcastable to (..., Lq', Lk)
    dropped: Tensor  # (..., Lq', Lk)
    scale: float  # of weights that are not dropped


def _matrices(leading: Sequence[int], weights: int) -> Iterator[Index]:
    """Cut ``leading`` dimensions into pieces of about a tile, where a matrix has so many ``weights``."""
    inner = math.prod(leading[1:]) * weights
    if len(leading) > 1 and inner >= _TILE:
        for number in range(leading[0]):
            for rest in _matrices(leading[1:], weights):
                yield (number, *rest)
    else:
        together = max(1, _TILE // inner)
        for start in range(0, leading[0], together):
            yield (slice(start, start + together),)


def _tiles(q: Tensor, k: Tensor, allowed: Tensor | None, dropout: float, seed: int) -> Iterator[_Tile]:
    """Cut the matrices of weights; the same seed draws the same samples."""
    generator = torch.Generator().manual_seed(seed)
    rows = max(1, min(q.size(-2), _TILE // k.size(-2)))
    for keys in _matrices(q.shape[:-2], rows * k.size(-2)):
        for start in range(0, q.size(-2), rows):
            span = slice(start, start + rows)
            queries = (*keys, ..., span, slice(None))
            blocked = None
            if allowed is not None:
                blocked = ~allowed[keys if allowed.size(-2) == 1 else queries]
            shape = torch.Size((*q[queries].shape[:-1], k.size(-2)))
            yield _Tile(keys, queries, start == 0, blocked, *bernoulli_samples(shape, dropout, generator))


def full_precision(x: Tensor) -> Tensor:
    """Return ``x`` in the precision in which weights are computed and sums are taken."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _weights(tile: _Tile, q: Tensor, k: Tensor) -> Tensor:
    """(..., Lq', E), (..., Lk, E) -> (..., Lq', Lk)."""
    logits = (q * q.size(-1) ** -0.5) @ k.transpose(-1, -2)
    if tile.blocked is not None:
        logits.masked_fill_(tile.blocked, -torch.inf)
    return logits.softmax(dim=-1)


def mix(weights: Tensor, dropped: Tensor | None, scale: float, values: Tensor) -> Tensor:
    """Mix values by weights (..., Lq, Lk), which it overwrites: (..., Lk, E) -> (..., Lq, E).

    Args:
        weights: of each row, sum to 1.
        dropped: True at weights that dropout drops, or None.
        scale: of the others.
        values: what is mixed.
    """
    return weights @ values if dropped is None else (weights.masked_fill_(dropped, 0.0) @ values).mul_(scale)


def attention_gradients(
    weights: Tensor,
    dropped: Tensor | None,
    scale: float,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    of_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values, given that of what `mix` returned."""
    mixed = weights
    if dropped is not None:
        mixed, of_out = weights.masked_fill(dropped, 0.0), of_out * scale
    # The softmax's backward pass, in as few passes over (..., Lq, Lk) as may be: weight times gradient, and of that the
    # weight's share of the sum over keys is subtracted.
    of_logits = (of_out @ values.transpose(-1, -2)).mul_(mixed)
    of_logits.addcmul_(of_logits.sum(dim=-1, keepdim=True), weights, value=-1)
    root = queries.size(-1) ** -0.5
    of_keys = of_logits.transpose(-1, -2) @ (queries * root)
    return (of_logits @ keys).mul_(root), of_keys, mixed.transpose(-1, -2) @ of_out


class _TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, dropout: float, seed: int) -> Tensor:
        out = torch.empty_like(q)
        with torch.autocast("cpu", enabled=False):
            for tile in _tiles(q, k, allowed, dropout, seed):
                weights = _weights(tile, full_precision(q[tile.queries]), full_precision(k[tile.keys]))
                out[tile.queries] = mix(weights, tile.dropped, tile.scale, full_precision(v[tile.keys]))
        ctx.save_for_backward(q, k, v, allowed)
        ctx.dropout, ctx.seed = dropout, seed
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, allowed = ctx.saved_tensors
        # In the order of their memory, so that no view that follows has to copy them.
        grad_q, grad_k, grad_v = (
            torch.empty_like(q),
            torch.empty_like(full_precision(k)),
            torch.empty_like(full_precision(v)),
        )
        with torch.autocast("cpu", enabled=False):
            for tile in _tiles(q, k, allowed, ctx.dropout, ctx.seed):
                queries, keys = full_precision(q[tile.queries]), full_precision(k[tile.keys])
                weights, of_out = _weights(tile, queries, keys), full_precision(grad[tile.queries])
                values = full_precision(v[tile.keys])
                of_q, of_k, of_v = attention_gradients(weights, tile.dropped, tile.scale, queries, keys, values, of_out)
                grad_q[tile.queries] = of_q
                _put(grad_k[tile.keys], of_k, tile.first)
                _put(grad_v[tile.keys], of_v, tile.first)
        return grad_q, grad_k.to(k.dtype), grad_v.to(v.dtype), None, None, None


def _put(place: Tensor, new: Tensor, first: bool) -> None:
    """Write ``new`` into ``place`` or, where it is not the ``first``, add it."""
    if first:
        place.copy_(new)
    else:
        place.add_(new)

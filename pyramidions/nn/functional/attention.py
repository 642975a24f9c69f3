"""Scaled dot-product attention that never holds the whole matrix of weights, with dropout either."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyramidions.nn.functional.dropout import coins

_TILE = 2**19  # weights that are in memory at a time


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, dropout: float = 0.0, *, is_causal: bool = False
) -> Tensor:
    """Attend (Vaswani et al. 2017, section 3.2.1).

    torch's own kernels do it, but for one case: on the CPU, attention dropout sends torch down a path that holds every
    weight several times. There the weights are computed tile by tile, and again in the backward pass (Dao et al. 2022,
    section 3.1, without their running softmax: a tile spans all keys).

    Args:
        q: (..., Lq, E).
        k: (..., Lk, E).
        v: (..., Lk, E).
        allowed: broadcastable to (..., Lq, Lk), True where attention is allowed, somewhere in each row; or None.
        dropout: probability of dropping a weight.
        is_causal: query i sees keys up to i; as many keys as queries, and no ``allowed``.

    Returns:
        (..., Lq, E).
    """
    if dropout == 0.0 or q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=is_causal)
    if is_causal:
        allowed = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril()
    # A seed, instead of a mask that is as large as the matrix of weights.
    seed = int(torch.randint(2**62, ()))
    if allowed is not None:
        allowed = allowed.expand(*q.shape[:-2], *allowed.shape[-2:])
    return _TiledAttention.apply(q, k, v, allowed, dropout, seed)


class _Tile(NamedTuple):
    keys: tuple[int | slice, ...]  # (..., Lk, E) -> (H', Lk, E)
    queries: tuple[int | slice, ...]  # (..., Lq, E) -> (H', Lq', E)
    first: bool  # of those with the same keys
    hidden: Tensor | None  # broadcastable to (H', Lq', Lk)
    dropped: Tensor  # (H', Lq', Lk)
    scale: float  # of weights that are not dropped


def _tiles(q: Tensor, k: Tensor, allowed: Tensor | None, dropout: float, seed: int) -> Iterator[_Tile]:
    """Cut the matrices of weights; the same seed tosses the same coins."""
    generator = torch.Generator().manual_seed(seed)
    *outer, heads, queries, _ = q.shape
    rows = max(1, min(queries, _TILE // k.size(-2)))
    together = max(1, _TILE // (rows * k.size(-2)))
    for index in product(*map(range, outer)):
        for head in range(0, heads, together):
            count = min(together, heads - head)
            keys: tuple[int | slice, ...] = (*index, slice(head, head + count))
            for start in range(0, queries, rows):
                span = slice(start, min(start + rows, queries))
                hidden = None
                if allowed is not None:
                    hidden = ~(allowed[keys] if allowed.size(-2) == 1 else allowed[(*keys, span)])
                shape = torch.Size((count, span.stop - start, k.size(-2)))
                yield _Tile(keys, (*keys, span), start == 0, hidden, *coins(shape, dropout, generator))


def _weights(tile: _Tile, q: Tensor, k: Tensor) -> Tensor:
    # (H', Lq', E) @ (H', E, Lk) -> (H', Lq', Lk)
    logits = torch.bmm(q[tile.queries] * q.size(-1) ** -0.5, k[tile.keys].transpose(1, 2)).to(_summed_in(q))
    if tile.hidden is not None:
        logits.masked_fill_(tile.hidden, -torch.inf)
    return logits.softmax(dim=-1)


def _summed_in(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


class _TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, dropout: float, seed: int) -> Tensor:
        out = torch.empty_like(q)
        with torch.autocast("cpu", enabled=False):
            for tile in _tiles(q, k, allowed, dropout, seed):
                weights = _weights(tile, q, k).masked_fill_(tile.dropped, 0.0).to(q.dtype)
                torch.mul(torch.bmm(weights, v[tile.keys]), tile.scale, out=out[tile.queries])
        ctx.save_for_backward(q, k, v, allowed, out)
        ctx.dropout, ctx.seed = dropout, seed
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, allowed, out = ctx.saved_tensors
        # In the order of their memory, so that no view that follows has to copy them.
        grad_q, grad_k, grad_v = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        scale = q.size(-1) ** -0.5
        for tile in _tiles(q, k, allowed, ctx.dropout, ctx.seed):
            weights = _weights(tile, q, k)
            grad_out = grad[tile.queries] * tile.scale
            # What the softmax's backward pass subtracts: the sum over keys of weight times its gradient.
            mean = (grad[tile.queries] * out[tile.queries]).sum(dim=-1, keepdim=True, dtype=_summed_in(q))
            grad_weights = torch.bmm(grad_out, v[tile.keys].transpose(1, 2)).to(_summed_in(q))
            grad_weights.masked_fill_(tile.dropped, 0.0)
            grad_logits = grad_weights.sub_(mean).mul_(weights).to(q.dtype)
            kept = weights.masked_fill_(tile.dropped, 0.0).to(q.dtype)
            torch.mul(torch.bmm(grad_logits, k[tile.keys]), scale, out=grad_q[tile.queries])
            _put(grad_k[tile.keys], torch.bmm(grad_logits.transpose(1, 2), q[tile.queries] * scale), tile.first)
            _put(grad_v[tile.keys], torch.bmm(kept.transpose(1, 2), grad_out), tile.first)
        return grad_q, grad_k, grad_v, None, None, None


def _put(place: Tensor, new: Tensor, first: bool) -> None:
    """Write ``new`` into ``place`` or, where it is not the ``first``, add it."""
    if first:
        place.copy_(new)
    else:
        place.add_(new)

"""Scaled dot-product attention that never holds the whole matrix of weights, with dropout either."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyramidions.nn.functional.dropout import coins

_TILE = 2**20  # weights that are in memory at a time


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
    leading = q.shape[:-2]
    rows = None
    if allowed is not None:
        allowed = allowed.expand(*[1] * (len(leading) + 2 - allowed.dim()), *allowed.shape)
        # Which matrix of `allowed` belongs to which of all matrices of weights.
        rows = torch.arange(allowed[..., 0, 0].numel()).view(allowed.shape[:-2]).expand(leading).flatten()
        allowed = allowed.flatten(0, -3)
    # (..., L, E) -> (N, L, E)
    out = _TiledAttention.apply(*(x.flatten(0, -3) for x in (q, k, v)), allowed, rows, dropout, seed)
    return out.unflatten(0, leading)


class _Tile(NamedTuple):
    matrices: slice
    queries: slice
    hidden: Tensor | None  # broadcastable to the tile
    dropped: Tensor  # as the tile
    scale: float  # of weights that are not dropped


def _tiles(
    q: Tensor, k: Tensor, allowed: Tensor | None, rows: Tensor | None, dropout: float, seed: int
) -> Iterator[_Tile]:
    """Cut the matrices of weights of ``q`` (N, Lq, E) and ``k`` (N, Lk, E); the same seed tosses the same coins."""
    generator = torch.Generator().manual_seed(seed)
    queries = max(1, min(q.size(1), _TILE // k.size(1)))
    matrices = max(1, _TILE // (queries * k.size(1)))
    for first in range(0, q.size(0), matrices):
        chosen = slice(first, min(first + matrices, q.size(0)))
        for start in range(0, q.size(1), queries):
            span = slice(start, min(start + queries, q.size(1)))
            hidden = None
            if allowed is not None and rows is not None:
                # (N', Lq or 1, Lk)
                mask = allowed[rows[chosen]]
                hidden = ~(mask if mask.size(1) == 1 else mask[:, span])
            shape = torch.Size((chosen.stop - first, span.stop - start, k.size(1)))
            yield _Tile(chosen, span, hidden, *coins(shape, dropout, generator))


def _summed_in(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _weights(tile: _Tile, q: Tensor, k: Tensor) -> Tensor:
    # (N, Lq, E) @ (N, E, Lk) -> (N, Lq, Lk)
    logits = torch.bmm(q[tile.matrices, tile.queries] * q.size(-1) ** -0.5, k[tile.matrices].transpose(1, 2))
    logits = logits.to(_summed_in(q))
    if tile.hidden is not None:
        logits.masked_fill_(tile.hidden, -torch.inf)
    return logits.softmax(dim=-1)


class _TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        allowed: Tensor | None,
        rows: Tensor | None,
        dropout: float,
        seed: int,
    ) -> Tensor:
        out = torch.empty_like(q)
        with torch.autocast("cpu", enabled=False):
            for tile in _tiles(q, k, allowed, rows, dropout, seed):
                weights = _weights(tile, q, k).masked_fill_(tile.dropped, 0.0).to(q.dtype)
                out[tile.matrices, tile.queries] = torch.bmm(weights, v[tile.matrices]).mul_(tile.scale)
        ctx.save_for_backward(q, k, v, allowed, rows, out)
        ctx.dropout, ctx.seed = dropout, seed
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, allowed, rows, out = ctx.saved_tensors
        grad_q, grad_k, grad_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        # What the softmax's backward pass subtracts: the sum over keys of weight times its gradient.
        mean = (grad * out).sum(dim=-1, keepdim=True, dtype=_summed_in(q))
        for tile in _tiles(q, k, allowed, rows, ctx.dropout, ctx.seed):
            part, keys = (tile.matrices, tile.queries), tile.matrices
            weights = _weights(tile, q, k)
            grad_out = grad[part] * tile.scale
            grad_weights = torch.bmm(grad_out, v[keys].transpose(1, 2)).to(_summed_in(q))
            grad_weights.masked_fill_(tile.dropped, 0.0)
            grad_logits = grad_weights.sub_(mean[part]).mul_(weights).to(q.dtype)
            kept = weights.masked_fill_(tile.dropped, 0.0).to(q.dtype)
            grad_v[keys] += torch.bmm(kept.transpose(1, 2), grad_out)
            grad_q[part] = torch.bmm(grad_logits, k[keys]).mul_(q.size(-1) ** -0.5)
            grad_k[keys] += torch.bmm(grad_logits.transpose(1, 2), q[part]).mul_(q.size(-1) ** -0.5)
        return grad_q, grad_k, grad_v, None, None, None, None

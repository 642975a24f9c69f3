"""Attention from blocks of queries to blocks of keys that an index names: a few blocks at a time."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.flop_counter import register_flop_formula

from pyramidions.nn.functional.attention import full_precision, scaled_dot_product_attention
from pyramidions.nn.functional.dropout import drawn_from, new_seed
from pyramidions.nn.functional.local_window import computes_in_tiles

_GATHERED = 2**19  # numbers in keys that are in memory at a time: what the caches of a CPU hold
_GATHERED_ON_GPU = 2**26


class Seen(NamedTuple):
    """What blocks of queries see.

    Attributes:
        blocks: (N, S), which blocks of keys.
        allowed: (N, S M), which keys of those, at least one in each row.
    """

    blocks: Tensor
    allowed: Tensor


def gathered_attention(q: Tensor, k: Tensor, v: Tensor, seen: Seen, dropout: float = 0.0) -> Tensor:
    """Attend from each block of queries to the keys that it sees.

    Memory grows with N. For the backward pass only the arguments are kept: it gathers keys and computes the weights
    again.

    Args:
        q: (N, M, E), blocks of all heads and documents.
        k: (K, M, E), likewise.
        v: (K, M, E).
        seen: by each block of queries.
        dropout: probability of dropping an attention weight.

    Returns:
        (N, M, E).
    """
    seed = new_seed() if dropout and not q.is_meta else 0
    out: Tensor = _Gathered.apply(q, k, v, *seen, dropout, seed)
    return out


def received_by_gathered(q: Tensor, k: Tensor, seen: Seen, left_out: Tensor) -> Tensor:
    """Return how much attention keys receive in `gathered_attention`: (K, M), in float32.

    Args:
        q: (N, M, E).
        k: (K, M, E).
        seen: by each block of queries.
        left_out: (N, M), True at queries that do not count.
    """
    received = torch.zeros(k.shape[:2], dtype=torch.float32, device=k.device)
    for piece in _pieces(q, seen):
        keys = _take(k, seen.blocks[piece])
        scores = full_precision((q[piece] * q.size(-1) ** -0.5) @ keys.transpose(-1, -2))
        weights = scores.masked_fill(~seen.allowed[piece, None], -torch.inf).softmax(dim=-1)
        # (N', M, S M) -> (N', S M) -> (N' S, M)
        total = weights.masked_fill(left_out[piece][..., None], 0.0).sum(dim=1).view(-1, k.size(1))
        received.index_add_(0, seen.blocks[piece].flatten(), total.to(received.dtype))
    return received


def _pieces(q: Tensor, seen: Seen) -> Iterator[slice]:
    """Cut the blocks of queries so that few keys are gathered at a time."""
    of_one = seen.allowed.size(1) * q.size(2)
    together = max(1, (_GATHERED if computes_in_tiles(q) else _GATHERED_ON_GPU) // of_one)
    for start in range(0, len(q), together):
        yield slice(start, min(len(q), start + together))


def _take(x: Tensor, blocks: Tensor) -> Tensor:
    # (K, M, E), (N, S) -> (N, S M, E)
    return x.index_select(0, blocks.flatten()).unflatten(0, blocks.shape).flatten(1, 2)


def _attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, dropout: float) -> Tensor:
    # Fused kernels want heads: (N, M, E) -> (N, 1, M, E)
    rows, keys, values = (x[:, None] for x in (q, k, v))
    return scaled_dot_product_attention(rows, keys, values, allowed[:, None, None], dropout).squeeze(1)


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        q, k, v, blocks, allowed, dropout, seed = given
        ctx.save_for_backward(q, k, v, blocks, allowed)
        ctx.options = dropout, seed
        out: Tensor = torch.ops.pyramidions.gathered_attention(*given)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, blocks, allowed = ctx.saved_tensors
        dropout, seed = ctx.options
        grad_q, grad_k, grad_v = torch.empty_like(q), *(torch.zeros_like(full_precision(x)) for x in (k, v))
        with drawn_from(seed, q.device, dropout):
            for piece in _pieces(q, Seen(blocks, allowed)):
                given = q[piece], _take(k, blocks[piece]), _take(v, blocks[piece])
                rows, keys, values = (x.detach().requires_grad_() for x in given)
                with torch.enable_grad():
                    out = _attend(rows, keys, values, allowed[piece], dropout)
                grad_q[piece], *of_seen = torch.autograd.grad(out, (rows, keys, values), grad[piece])
                for total, new in zip((grad_k, grad_v), of_seen, strict=True):
                    # (N', S M, E) -> (N' S, M, E)
                    new = new.unflatten(1, (-1, k.size(1))).flatten(0, 1).to(total.dtype)
                    total.index_add_(0, blocks[piece].flatten(), new)
        return grad_q, grad_k.to(k.dtype), grad_v.to(v.dtype), None, None, None, None


@torch.library.custom_op("pyramidions::gathered_attention", mutates_args=())
def _gathered(q: Tensor, k: Tensor, v: Tensor, blocks: Tensor, allowed: Tensor, dropout: float, seed: int) -> Tensor:
    """An operator of its own, so that who counts multiplications sees the same on all devices."""
    out = torch.empty_like(q)
    with drawn_from(seed, q.device, dropout):
        for piece in _pieces(q, Seen(blocks, allowed)):
            keys, values = _take(k, blocks[piece]), _take(v, blocks[piece])
            out[piece] = _attend(q[piece], keys, values, allowed[piece], dropout)
    return out


@_gathered.register_fake
def _shape_alone(q: Tensor, *rest: Any) -> Tensor:
    return torch.empty_like(q)


@register_flop_formula(torch.ops.pyramidions.gathered_attention, get_raw=True)
def _operations(q: Tensor, k: Tensor, v: Tensor, blocks: Tensor, allowed: Tensor, *_: Any, **__: Any) -> int:
    """Return the operations of scores and mixes."""
    return 4 * q.numel() * allowed.size(1)

"""Successive Halving: a tournament of pairs, played on the scores."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyramidions.nn.functional.topk.selection import TopK, prepare


def successive_halving_topk(
    x: Tensor,
    scores: Tensor,
    k: int,
    *,
    padding_mask: Tensor | None = None,
    base: float | None = 20.0,
    sort: bool = True,
) -> TopK:
    """Successive Halving top-k (Pietruszka et al. 2022, section 4 and algorithm 1).

    Every round sorts the candidates by score, pairs the i-th with the (n + 1 - i)-th, and replaces each pair by
    the convex combination that a peaked softmax over its two scores gives. Since an input ends up in exactly one
    output, the rounds run on the scores alone and compose, for every output, its members and their weights; the
    embeddings are read once, at the end.

    Padding, and the slots added to reach k * 2^p candidates, carry weight exactly 0; how much of them there is
    never changes the result. Ties go to the earlier position. Scores beyond a quarter of their type's range
    count as that quarter.

    Args:
        x: (B, L, D), the vectors to choose from.
        scores: (B, L), finite; float32 or float64 whatever the type of ``x``.
        k: how many vectors to hand on; an L of at most k passes through unchanged.
        base: the peaked softmax weighs a pair with softmax(base ** score), as the authors' code does;
            None is the plain softmax of equation (6).
        sort: sort the candidates before pairing them; without, they are paired as they stand (appendix B.5).

    Returns:
        The selection, K = k (or L where that is smaller), ordered by the position of each vector's strongest
        member, padding last.
    """
    if base is not None and base <= 1:
        raise ValueError(f"`base` must be above 1, or None for the plain softmax, but is {base}.")

    def select(scores: Tensor, padding_mask: Tensor) -> TopK:
        sources, weights, padding, kept_scores = _tournament(scores, padding_mask, k, base, sort)
        weights = weights.to(x.dtype)
        kept = _WeightedMembers.apply(x, sources, weights, padding)
        return TopK(kept, padding[..., 0], kept_scores, sources, weights)

    return prepare(x, scores, k, padding_mask, select)


def _tournament(
    scores: Tensor, padding_mask: Tensor, k: int, base: float | None, sort: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return, of the members (B, K, G), sources, weights and which are padding; and the slots' scores (B, K)."""
    batch, length = scores.shape
    rounds = math.ceil(math.log2(length / k))
    while k << rounds < length:  # log2 may round down
        rounds += 1
    virtual = (k << rounds) - length

    empty = F.pad(padding_mask, (0, virtual), value=True)
    v = F.pad(scores, (0, virtual)).masked_fill(empty, -math.inf)
    # Members of each slot, the tournament's winner in column 0: (B, n, 1), growing to (B, K, 2^rounds).
    sources = torch.arange(length + virtual, device=scores.device).expand(batch, -1)[..., None]
    weights = (~empty)[..., None].to(v.dtype)
    if not sort:
        # Content first, so that how much padding there is never decides who meets whom.
        v, sources, weights = _reorder(empty.to(torch.uint8).argsort(dim=1, stable=True), v, sources, weights)

    for _ in range(rounds):
        strong, weak = _pairs(v, sort)
        v, share = _play(v.gather(1, strong), v.gather(1, weak), base)
        weights = torch.cat(
            [_rows(weights, strong) * share[..., None], _rows(weights, weak) * (1 - share)[..., None]], 2
        )
        sources = torch.cat([_rows(sources, strong), _rows(sources, weak)], 2)
        if sort:
            # Ties of the next round go to the earlier position.
            v, sources, weights = _in_document_order(v, sources, weights)
    if not sort:
        v, sources, weights = _in_document_order(v, sources, weights)

    # A member that is padding points at the slot's first, whose values are known to be real.
    padding = F.pad(padding_mask, (0, virtual), value=True).gather(1, sources.flatten(1)).view(sources.shape)
    sources = torch.where(padding, sources[..., :1], sources).clamp(max=length - 1)
    return sources, weights, padding, v.masked_fill(v.isneginf(), 0.0)


def _pairs(v: Tensor, sort: bool) -> tuple[Tensor, Tensor]:
    """Return the indices of the stronger and of the weaker member of each pair (i, n + 1 - i): (B, n/2) each."""
    half = v.size(1) // 2
    if sort:
        order = v.sort(dim=1, descending=True, stable=True).indices
        return order[:, :half], order[:, half:].flip(1)
    first = torch.arange(half, device=v.device).expand(v.size(0), -1)
    second = v.size(1) - 1 - first
    upset = v[:, half:].flip(1) > v[:, :half]
    return torch.where(upset, second, first), torch.where(upset, first, second)


def _in_document_order(v: Tensor, sources: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Order slots by the position of their winner, those without content last."""
    # Positions are distinct and few: counting the ones before each is cheaper than sorting them.
    length = v.size(1) * sources.size(2)
    position = sources[..., 0] + v.isneginf() * length
    taken = position.new_zeros(v.size(0), 2 * length, dtype=torch.int32).scatter_(1, position, 1)
    rank = taken.cumsum(dim=1, dtype=torch.int32).gather(1, position).long() - 1
    slots = torch.arange(v.size(1), device=v.device).expand_as(rank)
    return _reorder(torch.empty_like(rank).scatter_(1, rank, slots), v, sources, weights)


def _reorder(order: Tensor, v: Tensor, sources: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return v.gather(1, order), _rows(sources, order), _rows(weights, order)


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """Pick rows: (B, n, G) and (B, m) -> (B, m, G)."""
    return x.gather(1, index[..., None].expand(-1, -1, x.size(2)))


def _play(strong: Tensor, weak: Tensor, base: float | None) -> tuple[Tensor, Tensor]:
    """Return the pair's new score and the share of its stronger member; -inf marks a slot without content."""
    single = weak.isneginf()
    # Both are made finite before any arithmetic: 0 * inf would be NaN in the backward pass.
    a = strong.masked_fill(strong.isneginf(), 0.0)
    b = torch.where(single, a, weak)
    share = torch.where(single, torch.ones_like(a), _pair_softmax(a, b, base))
    return (share * a + (1 - share) * b).masked_fill(strong.isneginf(), -math.inf), share


def _pair_softmax(a: Tensor, b: Tensor, base: float | None) -> Tensor:
    """Softmax over (a, b), a >= b, of base ** score (or of the score itself): the share of a."""
    gap = b - a
    if base is None:
        return torch.sigmoid(-gap)
    # base**a - base**b = base**a * -expm1((b - a) ln base). Beyond e^40 the sigmoid is 1 for any gap that a
    # float can hold, so the exponent stops there, and 20**40 never meets 20**40.
    log_base = math.log(base)
    ceiling = 40.0 / log_base
    return torch.sigmoid(torch.exp(a.clamp(max=ceiling) * log_base) * -torch.expm1(gap * log_base))


class _WeightedMembers(torch.autograd.Function):
    """Sum the members of every slot: (B, L, D), (B, K, G) x 3 -> (B, K, D).

    Every input is a member of at most one slot, so that the backward pass reads each embedding once, too.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, sources: Tensor, weights: Tensor, padding: Tensor) -> Tensor:
        batch, length, dim = x.shape
        kept, members = sources.shape[1:]
        start = torch.arange(batch, device=x.device)[:, None, None] * length
        bags = (sources + start).view(-1, members)
        flat = weights.reshape(-1, members)
        pooled = F.embedding_bag(bags, x.reshape(-1, dim), mode="sum", per_sample_weights=flat).view(batch, kept, dim)
        ctx.save_for_backward(x, sources.masked_fill(padding, length).flatten(1), weights)
        # A slot without content has no weight, but 0 * NaN of a padded position would still be NaN.
        return pooled.masked_fill_(padding[..., :1], 0.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor, None]:
        x, members, weights = ctx.saved_tensors
        batch, length, dim = x.shape
        kept, size = weights.shape[1:]
        # Which slot an input belongs to, and how much of it: (B, L + 1), the last for members that are padding.
        slot = torch.arange(kept, device=x.device).repeat_interleave(size).expand(batch, -1)
        slot = members.new_zeros(batch, length + 1).scatter_(1, members, slot)
        share = weights.new_zeros(batch, length + 1).scatter_(1, members, weights.flatten(1))
        # (B, K, D) -> (B, L, D)
        start = torch.arange(batch, device=x.device)[:, None] * kept
        grad_x = grad.reshape(-1, dim).index_select(0, (slot[:, :length] + start).flatten()).view_as(x)
        # As a product of matrices, which holds no third (B, L, D); of their own type, even where autocast is on.
        with torch.autocast(x.device.type, enabled=False):
            dots = torch.bmm(x.reshape(-1, 1, dim), grad_x.view(-1, dim, 1)).view(batch, length)
        # What is padding is a member of nothing, and its values may be anything.
        grad_weights = F.pad(dots, (0, 1)).gather(1, members).view_as(weights)
        grad_x *= share[:, :length, None]
        return grad_x, None, grad_weights, None

"""Soft, differentiable top-k selection: from (B, L, D) to (B, K, D), guided by scores."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class TopK(NamedTuple):
    """What a top-k operator selected, in the order of the input.

    Attributes:
        x: (B, K, D), the selected vectors; zero at padding.
        padding_mask: (B, K), True where a document had no vector left to give.
        scores: (B, K), the scores that the selected vectors carry; zero at padding.
        sources: (B, K, G), which inputs a vector is made of, the strongest first.
        weights: (B, K, G), how much of each; they sum to 1, and to 0 at padding.
    """

    x: Tensor
    padding_mask: Tensor
    scores: Tensor
    sources: Tensor
    weights: Tensor


def successive_halving_topk(
    x: Tensor,
    scores: Tensor,
    k: int,
    *,
    padding_mask: Tensor | None = None,
    base: float | None = 20.0,
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
        padding_mask: (B, L), True at padding, or None.
        base: the peaked softmax weighs a pair with softmax(base ** score), as the authors' code does;
            None is the plain softmax of equation (6).

    Returns:
        The selection, K = k (or L where that is smaller), ordered by the position of each vector's strongest
        member, padding last.

    Raises:
        ValueError: shapes that do not fit, a k below 1, or a base of at most 1.
    """
    _check(x, scores, k, padding_mask, base)
    if padding_mask is None:
        padding_mask = torch.zeros_like(scores, dtype=torch.bool)
    if scores.size(1) <= k:
        return _pass_through(x, scores, padding_mask)

    scores = scores if scores.dtype == torch.float64 else scores.float()
    sources, weights, kept_scores, empty = _tournament(scores, padding_mask, k, base)
    weights = weights.to(x.dtype)
    return TopK(_weighted_members(x, sources, weights), empty, kept_scores, sources, weights)


def _check(x: Tensor, scores: Tensor, k: int, padding_mask: Tensor | None, base: float | None) -> None:
    if k < 1:
        raise ValueError(f"`k` must be at least 1, but is {k}.")
    if base is not None and base <= 1:
        raise ValueError(f"`base` must be above 1, or None for the plain softmax, but is {base}.")
    if x.dim() != 3 or scores.shape != x.shape[:2]:
        raise ValueError(
            f"`x` must be (B, L, D) and `scores` (B, L), but they are {tuple(x.shape)} and {tuple(scores.shape)}."
        )
    if padding_mask is not None and padding_mask.shape != scores.shape:
        raise ValueError(f"`padding_mask` must be (B, L) = {tuple(scores.shape)}, but is {tuple(padding_mask.shape)}.")


def _pass_through(x: Tensor, scores: Tensor, padding_mask: Tensor) -> TopK:
    batch, length = scores.shape
    sources = torch.arange(length, device=x.device).expand(batch, length)[..., None]
    weights = (~padding_mask)[..., None].to(x.dtype)
    return TopK(x, padding_mask, scores.masked_fill(padding_mask, 0.0), sources, weights)


def _tournament(
    scores: Tensor, padding_mask: Tensor, k: int, base: float | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return sources (B, K, G), weights (B, K, G), scores (B, K) and the mask of empty slots (B, K)."""
    batch, length = scores.shape
    rounds = math.ceil(math.log2(length / k))
    while k << rounds < length:  # log2 may round down
        rounds += 1
    virtual = (k << rounds) - length

    limit = torch.finfo(scores.dtype).max / 4
    v = F.pad(scores.clamp(-limit, limit), (0, virtual))
    empty = F.pad(padding_mask, (0, virtual), value=True)
    v = v.masked_fill(empty, -math.inf)
    # Members of each slot, the strongest in column 0: (B, n, 1), growing to (B, K, 2^rounds).
    sources = torch.arange(length + virtual, device=scores.device).expand(batch, -1)[..., None]
    weights = (~empty)[..., None].to(v.dtype)

    for _ in range(rounds):
        order = v.sort(dim=1, descending=True, stable=True).indices
        half = order.size(1) // 2
        strong, weak = order[:, :half], order[:, half:].flip(1)
        v, share = _play(v.gather(1, strong), v.gather(1, weak), base)
        weights = torch.cat(
            [_rows(weights, strong) * share[..., None], _rows(weights, weak) * (1 - share)[..., None]], 2
        )
        sources = torch.cat([_rows(sources, strong), _rows(sources, weak)], 2)
        # Back to the order of the document, so that ties of the next round go to the earlier position.
        order = _position(sources[..., 0], v).argsort(dim=1)
        v, weights, sources = v.gather(1, order), _rows(weights, order), _rows(sources, order)

    empty = v.isneginf()
    # A member without weight is never read: it points at the slot's strongest, whose values are known to be real.
    sources = torch.where(weights == 0, sources[..., :1], sources).clamp(max=length - 1)
    return sources, weights, v.masked_fill(empty, 0.0), empty


def _position(strongest: Tensor, v: Tensor) -> Tensor:
    """Return the sort key that keeps document order and puts slots without a real member last: (B, n)."""
    return strongest + v.isneginf() * (strongest.amax() + 1)


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


def _weighted_members(x: Tensor, sources: Tensor, weights: Tensor) -> Tensor:
    """Sum the members of every slot: (B, L, D), (B, K, G) x 2 -> (B, K, D)."""
    batch, length, dim = x.shape
    kept, members = sources.shape[1:]
    start = torch.arange(batch, device=x.device)[:, None, None] * length
    bags = (sources + start).reshape(-1, members)
    # A slot without content has no weight, but 0 * NaN of a padded position would still be NaN.
    pooled = F.embedding_bag(bags, x.reshape(-1, dim), mode="sum", per_sample_weights=weights.reshape(-1, members))
    pooled = pooled.view(batch, kept, dim)
    return pooled.masked_fill((weights[..., 0] == 0)[..., None], 0.0)

"""Successive Halving: a tournament of pairs, played on the scores."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

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
        return TopK(*_Halving.apply(x, scores, padding_mask, k, base, sort))

    return prepare(x, scores, k, padding_mask, select)


class _Round(NamedTuple):
    """What a round leaves for the backward pass: (B, n) positions, and (B, n/2) of each pair."""

    met: Tensor  # the candidates, the stronger of each pair and then, in the same order, the weaker
    score_gap: Tensor  # the weaker score minus the stronger
    share: Tensor  # of the weaker; 0 where there is none
    power: Tensor  # of the stronger score, base ** score
    power_gap: Tensor  # the power of the weaker score minus that of the stronger


class _Played(NamedTuple):
    """A tournament of (B, L') candidates, each of which stays at its position of the document."""

    winners: Tensor  # (B, K), their positions, behind them those of slots without content
    absent: Tensor  # (B, K), which slots are without content
    scores: Tensor  # (B, K), that the slots carry
    slot: Tensor  # (B, L'), which slot each candidate is in
    weights: Tensor  # (B, L'), how much of each candidate its slot has
    rounds: list[_Round]


def _tournament(scores: Tensor, empty: Tensor, k: int, base: float | None, sort: bool) -> _Played:
    """Let k slots remain of k * 2^p candidates, some of them ``empty``: (B, L') x 2."""
    size, nothing = scores.size(1), torch.finfo(scores.dtype).min / 2
    scores = scores.masked_fill(empty, nothing)
    # Unsorted, content comes first, so that how much padding there is never decides who meets whom.
    left = empty if sort else empty.to(torch.uint8).argsort(dim=1, stable=True)
    rounds: list[_Round] = []
    while k << len(rounds) < size:
        count = size >> len(rounds)
        if sort:
            # Who lost is behind what is empty.
            left = scores.sort(dim=1, descending=True, stable=True).indices[:, :count]
        strong, weak = left[:, : count // 2], left[:, count // 2 :].flip(1)
        if not sort:
            upset = scores.gather(1, weak) > scores.gather(1, strong)
            strong, weak = torch.where(upset, weak, strong), torch.where(upset, strong, weak)
        met = torch.cat([strong, weak], dim=1)
        high, low = scores.gather(1, met).chunk(2, dim=1)
        score_gap = low - high
        power, power_gap = _powers(high, score_gap, base)
        share = power_gap.sigmoid().masked_fill(low == nothing, 0.0)
        scores = scores.scatter(1, strong, torch.addcmul(high, share, score_gap)).scatter_(1, weak, -torch.inf)
        left = strong
        rounds.append(_Round(met, score_gap, share, power, power_gap))
    # In the order of the document, behind them what is empty.
    winners = (left + size * (scores.gather(1, left) == nothing)).sort(dim=1).values % size
    kept = scores.gather(1, winners)
    absent = kept == nothing
    slot = torch.empty_like(scores, dtype=torch.long)
    slot.scatter_(1, winners, torch.arange(k, device=slot.device).expand_as(winners))
    weights = torch.empty_like(scores).scatter_(1, winners, 1.0 - absent.to(scores.dtype))
    for met, _, share, *_ in reversed(rounds):
        strong, weak = met.chunk(2, dim=1)
        whole = weights.gather(1, strong)
        part = whole * share
        weights.scatter_(1, met, torch.cat([whole - part, part], dim=1))
        slot.scatter_(1, weak, slot.gather(1, strong))
    return _Played(winners, absent, kept.masked_fill(absent, 0.0), slot, weights, rounds)


def _powers(high: Tensor, score_gap: Tensor, base: float | None) -> tuple[Tensor, Tensor]:
    """Return the power of the stronger score of each pair, and the power of the weaker minus it."""
    if base is None:
        return torch.ones_like(score_gap), score_gap
    # base**b - base**a = base**a * expm1((b - a) ln base). Beyond e^40 the sigmoid is 0 for any gap that a float can
    # hold, so the exponent stops there, and 20**40 never meets 20**40.
    power = (high * math.log(base)).clamp(max=40.0).exp()
    return power, power * torch.expm1(score_gap * math.log(base))


def _grad_of_scores(rounds: Sequence[_Round], base: float | None, grad_logs: Tensor, grad_slots: Tensor) -> Tensor:
    """Return the gradient of the candidates' scores, given those of the logarithms of weights and of slots' scores.

    With ``s``, the share of the weaker, d log (1 - s) = -s dg and d log s = (1 - s) dg, where ``g`` is the gap of
    powers; its derivatives are -ln(base) * power by the stronger score, and ln(base) * (power + g) by the weaker.
    """
    of_weights = []
    for met, _, share, *_ in rounds:
        # A share has a part in the weights of all that are in the slot.
        strong, weak = grad_logs.gather(1, met).chunk(2, dim=1)
        both = strong + weak
        of_weights.append(weak - share * both)
        grad_logs = grad_logs.scatter(1, met[:, : share.size(1)], both)
    for met, score_gap, share, power, power_gap in reversed(rounds):
        grad_slot = grad_slots.gather(1, met[:, : share.size(1)])
        grad_gap = torch.addcmul(of_weights.pop(), share * (1 - share) * score_gap, grad_slot)
        down = up = grad_gap
        if base is not None:
            grad_gap = grad_gap * math.log(base)
            down, up = grad_gap * power, grad_gap * (power + power_gap)
        part = share * grad_slot
        grad_slots = grad_slots.scatter(1, met, torch.cat([grad_slot - part - down, part + up], dim=1))
    return grad_slots


class _Halving(torch.autograd.Function):
    """Selects, with gradients of the vectors and of the scores.

    Every input is a member of one slot, so that the backward pass reads each embedding once, too. A GPU waits for
    Python where kernels are small: autograd's own passes through the rounds would start three times as many.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scores: Tensor, padding_mask: Tensor, k: int, base: float | None, sort: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        batch, length, dim = x.shape
        size = 1
        while k * size < length:
            size *= 2
        empty = F.pad(padding_mask, (0, k * size - length), value=True)
        played = _tournament(F.pad(scores, (0, k * size - length)), empty, k, base, sort)
        winners, absent, weights = played.winners, played.absent, played.weights
        # Winners first, and then the others in the order of the document.
        others = torch.ones_like(played.slot).scatter_(1, winners, 0)
        members = (2 * played.slot + others).argsort(dim=1, stable=True)
        # A member that is padding points at the slot's first, whose values are known to be real.
        sources = torch.where(empty.gather(1, members), winners.repeat_interleave(size, 1), members)
        sources = sources.clamp(max=length - 1).view(batch, k, size)
        shares = weights.gather(1, members).view(batch, k, size).to(x.dtype)
        start = torch.arange(batch, device=x.device)[:, None, None] * length
        bags, flat = (sources + start).view(-1, size), shares.view(-1, size)
        kept = F.embedding_bag(bags, x.reshape(-1, dim), mode="sum", per_sample_weights=flat).view(batch, k, dim)
        ctx.base = base
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            x, played.slot, weights, members, winners, *(each for one in played.rounds for each in one)
        )
        ctx.mark_non_differentiable(absent, sources)
        # A slot without content has no weight, but 0 * NaN of a padded position would still be NaN.
        return kept.masked_fill_(absent[..., None], 0.0), absent, played.scores, sources, shares

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_kept: Tensor | None, _: None, grad_scores: Tensor | None, __: None, grad_shares: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        x, slot, weights, members, winners, *flat = ctx.saved_tensors
        rounds = [_Round(*each) for each in zip(*[iter(flat)] * len(_Round._fields), strict=True)]
        batch, length, dim = x.shape
        if grad_kept is None:
            grad_kept = x.new_zeros(*winners.shape, dim)
        # (B, K, D) -> (B, L, D)
        start = torch.arange(batch, device=x.device)[:, None] * winners.size(1)
        grad_x = grad_kept.reshape(-1, dim).index_select(0, (slot[:, :length] + start).flatten()).view_as(x)
        # As a product of matrices, which holds no third (B, L, D); of their own type, even where autocast is on.
        with torch.autocast(x.device.type, enabled=False):
            dots = torch.bmm(x.reshape(-1, 1, dim), grad_x.view(-1, dim, 1)).view(batch, length)
        grad_weights = F.pad(dots.to(weights.dtype), (0, weights.size(1) - length))
        if grad_shares is not None:
            grad_weights = grad_weights.scatter_add(1, members, grad_shares.flatten(1).to(weights.dtype))
        # What is padding has no weight, and its values may be anything.
        absent = weights == 0
        grad_logs = (grad_weights * weights).masked_fill(absent, 0.0)
        grad_slots = torch.zeros_like(weights)
        if grad_scores is not None:
            grad_slots.scatter_(1, winners, grad_scores)
        grad_x *= weights[:, :length, None].to(x.dtype)
        grad_scores = _grad_of_scores(rounds, ctx.base, grad_logs, grad_slots).masked_fill(absent, 0.0)
        return grad_x, grad_scores[:, :length], None, None, None, None

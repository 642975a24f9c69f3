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
    gap: Tensor  # the weaker score minus the stronger
    share: Tensor  # of the weaker; 0 where there is none
    power: Tensor  # of the stronger score, base ** score
    lead: Tensor  # the power of the weaker score minus that of the stronger


class _Played(NamedTuple):
    """A tournament of (B, L') candidates, each of which stays at its position of the document."""

    winners: Tensor  # (B, K), their positions, behind them those of slots without content
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
    for count in (size >> n for n in range((size // k).bit_length() - 1)):
        if sort:
            # Who lost is behind what is empty.
            left = scores.sort(dim=1, descending=True, stable=True).indices[:, :count]
        strong, weak = left[:, : count // 2], left[:, count // 2 :].flip(1)
        if not sort:
            upset = scores.gather(1, weak) > scores.gather(1, strong)
            strong, weak = torch.where(upset, weak, strong), torch.where(upset, strong, weak)
        met = torch.cat([strong, weak], dim=1)
        high, low = scores.gather(1, met).chunk(2, dim=1)
        gap = low - high
        power, lead = _powers(high, gap, base)
        share = lead.sigmoid().masked_fill(low == nothing, 0.0)
        scores = scores.scatter(1, strong, torch.addcmul(high, share, gap)).scatter_(1, weak, -torch.inf)
        left = strong
        rounds.append(_Round(met, gap, share, power, lead))
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
    return _Played(winners, kept.masked_fill(absent, 0.0), slot, weights, rounds)


def _powers(high: Tensor, gap: Tensor, base: float | None) -> tuple[Tensor, Tensor]:
    """Return the power of the stronger score of each pair, and how far that of the weaker lies below it."""
    if base is None:
        return torch.ones_like(gap), gap
    # base**b - base**a = base**a * expm1((b - a) ln base). Beyond e^40 the sigmoid is 0 for any gap that a float can
    # hold, so the exponent stops there, and 20**40 never meets 20**40.
    power = (high * math.log(base)).clamp(max=40.0).exp()
    return power, power * torch.expm1(gap * math.log(base))


def _of_scores(rounds: Sequence[_Round], base: float | None, of_logs: Tensor, of_slots: Tensor) -> Tensor:
    """Return the gradient of the candidates' scores, given those of the logarithms of weights and of slots' scores."""
    of_shares = []
    for each in rounds:
        # A share has a part in the weights of all that are in the slot.
        strong, weak = of_logs.gather(1, each.met).chunk(2, dim=1)
        of_slot = strong + weak
        of_shares.append(weak - each.share * of_slot)
        of_logs = of_logs.scatter(1, each.met[:, : each.gap.size(1)], of_slot)
    for each, of_share in zip(reversed(rounds), reversed(of_shares), strict=True):
        of_slot = of_slots.gather(1, each.met[:, : each.gap.size(1)])
        of_lead = torch.addcmul(of_share, each.share * (1 - each.share) * each.gap, of_slot)
        if base is None:
            up = down = of_lead
        else:
            of_lead = of_lead * math.log(base)
            up, down = of_lead * each.power, of_lead * (each.power + each.lead)
        of_weak = each.share * of_slot
        of_slots = of_slots.scatter(1, each.met, torch.cat([of_slot - of_weak - up, of_weak + down], dim=1))
    return of_slots


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
        winners, weights = played.winners, played.weights
        absent = empty.gather(1, winners)
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
        ctx.save_for_backward(
            x, played.slot, weights, members, winners, *(each for one in played.rounds for each in one)
        )
        ctx.mark_non_differentiable(absent, sources)
        # A slot without content has no weight, but 0 * NaN of a padded position would still be NaN.
        return kept.masked_fill_(absent[..., None], 0.0), absent, played.scores, sources, shares

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, of_kept: Tensor, _: Tensor, of_scores: Tensor, __: Tensor, of_shares: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, slot, weights, members, winners, *rounds = ctx.saved_tensors
        batch, length, dim = x.shape
        # (B, K, D) -> (B, L, D)
        start = torch.arange(batch, device=x.device)[:, None] * winners.size(1)
        of_x = of_kept.reshape(-1, dim).index_select(0, (slot[:, :length] + start).flatten()).view_as(x)
        # As a product of matrices, which holds no third (B, L, D); of their own type, even where autocast is on.
        with torch.autocast(x.device.type, enabled=False):
            dots = torch.bmm(x.reshape(-1, 1, dim), of_x.view(-1, dim, 1)).view(batch, length)
        of_weights = F.pad(dots.to(weights.dtype), (0, weights.size(1) - length))
        of_weights = of_weights.scatter_add(1, members, of_shares.flatten(1).to(weights.dtype))
        # What is padding has no weight, and its values may be anything.
        absent = weights == 0
        of_logs = (of_weights * weights).masked_fill(absent, 0.0)
        of_slots = torch.zeros_like(weights).scatter_(1, winners, of_scores)
        of_x *= weights[:, :length, None].to(x.dtype)
        played = [_Round(*each) for each in zip(*[iter(rounds)] * len(_Round._fields), strict=True)]
        of_scores = _of_scores(played, ctx.base, of_logs, of_slots).masked_fill(absent, 0.0)
        return of_x, of_scores[:, :length], None, None, None, None

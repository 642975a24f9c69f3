"""Attention in tiles: one loop for all kinds. It holds few weights at a time, with dropout as well."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.flop_counter import register_flop_formula

from pyramidions.base.device import has_values
from pyramidions.nn.functional.dropout import bernoulli_samples, drawn_from, draws_bernoulli, new_seed
from pyramidions.nn.functional.flex import flex_window, takes_flex
from pyramidions.nn.functional.fused import Attend, fused_pieces
from pyramidions.nn.functional.kernels import AUTO, FLEX
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.functional.tiles import Band, Dense, Index, Plan, ScoreMod, Tile, computes_in_tiles


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, dropout: float = 0.0, *, is_causal: bool = False
) -> Tensor:
    """Attend (Vaswani et al. 2017, section 3.2.1): (..., Lq, E), (..., Lk, E) twice -> (..., Lq, E).

    torch's own kernels do it, but for one case: on the CPU, attention dropout sends torch down a path that holds every
    weight several times.

    Args:
        allowed: broadcastable to (..., Lq, Lk), True where attention is allowed, somewhere in each row, or what
            `as_bias` makes of it; or None.
        is_causal: query i sees keys up to i; as many keys as queries, and no ``allowed``.
    """
    nothing = not (q.numel() and k.numel())
    if dropout == 0.0 or nothing or not draws_bernoulli(q):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=is_causal)
    return tiled_attention(q, k, v, Dense(k.size(-2), allowed, is_causal), dropout=dropout)


def tiled_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: Plan,
    score_mod: ScoreMod | None = None,
    dropout: float = 0.0,
    kernels: str = AUTO,
) -> Tensor:
    """Attend to the keys that a plan names: (..., Lq, E), (..., Lk, E) twice -> (..., Lq, E).

    Weights are computed tile by tile, and again in the backward pass, for which only the arguments are kept (Dao et al.
    2022, section 3.1, without their running softmax: a tile spans all keys of its queries). On a CPU that is done in
    float32 or better. ``kernels`` FLEX computes a `Band` by FlexAttention where it can.
    """
    if kernels == FLEX and isinstance(plan, Band) and score_mod is None and takes_flex(q, plan, dropout):
        return flex_window(q, k, v, plan)
    return _attended(q, k, v, plan, score_mod, dropout, totals=False).mixed


class Attended(NamedTuple):
    """What queries read."""

    mixed: Tensor  # (..., Lq, E)
    total: Tensor  # log-sum-exp of their scores, (..., Lq, 1), in float32 or better


def attended(
    q: Tensor, k: Tensor, v: Tensor, plan: Plan, score_mod: ScoreMod | None = None, dropout: float = 0.0
) -> Attended:
    """Attend as `tiled_attention`, and tell what scores sum to."""
    return _attended(q, k, v, plan, score_mod, dropout, totals=True)


def joined(first: Attended, second: Attended) -> Attended:
    """Join the results of the same queries over two disjoint sets of keys, by the log-sum-exp of their scores."""
    total = torch.logaddexp(first.total, second.total)
    mixed = (first.total - total).exp() * first.mixed + (second.total - total).exp() * second.mixed
    return Attended(mixed.to(first.mixed.dtype), total)


def received(
    q: Tensor,
    k: Tensor,
    plan: Plan,
    left_out: Tensor,
    score_mod: ScoreMod | None = None,
    total: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Return how much attention each key receives in `tiled_attention`.

    Args:
        left_out: broadcastable to (..., Lq, 1), True at queries that do not count.
        total: log-sum-exp of all scores of a query, where it sees further keys, (..., Lq, 1); or None.

    Returns:
        (..., Lk, 1) of ``k``, and of the plan's further keys, in float32.
    """
    work, left_out = _Work(plan, score_mod, 0.0, 0, False), left_out.expand(*q.shape[:-1], 1)
    keys = work.sources(k, "further_k")
    sums = [x.new_zeros(*x.shape[:-1], 1, dtype=torch.float32) for x in keys]
    with torch.no_grad(), work.undisturbed(q):
        for read in _reads(work, q, keys, work.prepared(q), total):
            weights = read.weights.masked_fill_(left_out[read.tile.queries], 0.0).sum(dim=-2)[..., None]
            parts = weights.split([x.size(-2) for x in read.keys], dim=-2)
            for summed, place, part in zip(sums, read.tile.places, parts, strict=True):
                _add(summed, place, part)
    return tuple(sums)


class _Kept(int):
    """The number of a tensor that autograd keeps."""


class _Work(NamedTuple):
    plan: Any
    score_mod: Any
    dropout: float
    seed: int
    totals: bool

    def emptied(self) -> tuple["_Work", list[Tensor]]:
        """Take the tensors out, for autograd to keep."""
        tensors = [x for part in self[:2] if part is not None for x in part if isinstance(x, Tensor)]
        numbers = iter(range(len(tensors)))
        return self._each(lambda x: _Kept(next(numbers)) if isinstance(x, Tensor) else x), tensors

    def filled(self, tensors: Sequence[Tensor]) -> "_Work":
        """Undo `emptied`."""
        return self._each(lambda x: tensors[x] if isinstance(x, _Kept) else x)

    def _each(self, change: Callable[[Any], Any]) -> "_Work":
        plan, score_mod = (part and type(part)(*map(change, part)) for part in (self.plan, self.score_mod))
        return self._replace(plan=plan, score_mod=score_mod)

    def sources(self, x: Tensor, further: str) -> list[Tensor]:
        """Return the tensors that hold keys, or values."""
        more = getattr(self.plan, further, None)
        return [x] if more is None or not more.size(2) else [x, more]

    def prepared(self, q: Tensor) -> Sequence[Tensor]:
        """Return the tensors that the tiles of a score mod read parts of."""
        return self.score_mod.prepared(self.plan.rows(q.shape, not computes_in_tiles(q))) if self.score_mod else ()

    def pieces(self, q: Tensor) -> Iterator[tuple[Tile, Attend]] | None:
        """Return the pieces that fused kernels of a GPU compute, or None."""
        return None if computes_in_tiles(q) or self.score_mod or self.totals else fused_pieces(self.plan, q)

    def operations(self, q: Tensor, v: Tensor) -> int:
        """Return the operations of scores and mixes, cut as on a GPU."""
        if not self.score_mod and not self.totals:
            return int(self.plan.operations(q))
        total, dim = 0, q.size(-1)
        for tile in self.plan.tiles(q.shape, on_gpu=True):
            of_all = 2 * (tile.span.stop - tile.span.start) * (dim + v.size(-1))
            of_all += self.score_mod.operations(tile) * dim if self.score_mod else 0
            total += tile.queries_in(q.shape) * of_all
        return total

    @contextmanager
    def undisturbed(self, q: Tensor) -> Iterator[None]:
        """Keep autocast away, and draw from the seed alone."""
        with torch.autocast(q.device.type, enabled=False), drawn_from(self.seed, q.device, self.dropout):
            yield


def _attended(
    q: Tensor, k: Tensor, v: Tensor, plan: Plan, score_mod: ScoreMod | None, dropout: float, totals: bool
) -> Attended:
    # A seed, instead of a mask that is as large as the matrix of weights.
    seed = new_seed() if dropout and has_values(q) else 0
    work, tensors = _Work(plan, score_mod, dropout, seed, totals).emptied()
    return Attended(*_Tiled.apply(work, q, k, v, *tensors))


class _Read(NamedTuple):
    """What a tile computes with, in float32 or better on a CPU."""

    tile: Tile
    leaves: list[Tensor]  # what a score mod reads
    content: Tensor  # (..., M, E), what keys are multiplied with
    added: Tensor | None  # what is added to the products
    keys: list[Tensor]  # (..., S, E)
    highest: Tensor | None  # score of each query, (..., M, 1)
    weights: Tensor  # (..., M, S)


def _reads(
    work: _Work,
    q: Tensor,
    keys: list[Tensor],
    prepared: Sequence[Tensor],
    total: Tensor | None = None,
    learns: bool = False,
) -> Iterator[_Read]:
    """Compute the weights of each tile: shares of its own scores, or of a ``total`` (..., Lq, 1) of them and others.

    A score mod that ``learns`` is differentiable.
    """
    on_gpu, mod = not computes_in_tiles(q), work.score_mod
    bias_of = work.plan.bias(q, on_gpu)
    for tile in work.plan.tiles(q.shape, on_gpu):
        content, added, leaves = _cast(q[tile.queries]), None, []
        if mod is not None:
            parts = [x[place].detach().requires_grad_(x.requires_grad) for x, place in mod.beside(tile, prepared)]
            leaves = [content.detach().requires_grad_(), *parts]
            with torch.set_grad_enabled(learns):
                content, added = mod.scores(*leaves)
        seen = _seen(keys, tile)
        scores = _products(content.detach() * q.size(-1) ** -0.5, seen)
        # In place: each pass over the scores takes a good part of the time of a product.
        if added is not None:
            scores.add_(added.detach())
        if (bias := bias_of(tile)) is not None:
            scores[..., -bias.size(-1) :].add_(bias)
        highest = scores.amax(dim=-1, keepdim=True) if work.totals else None
        weights = scores.softmax(dim=-1) if total is None else scores.sub_(total[tile.queries]).exp_()
        yield _Read(tile, leaves, content, added, seen, highest, weights)


def _cast(x: Tensor) -> Tensor:
    return full_precision(x) if computes_in_tiles(x) else x


def _seen(sources: list[Tensor], tile: Tile) -> list[Tensor]:
    return [_cast(_take(x, place)) for x, place in zip(sources, tile.places, strict=True)]


def _take(x: Tensor, place: Index | Tensor) -> Tensor:
    if not isinstance(place, Tensor):
        return x[place]
    # (K, M, E), (N, S) -> (N, S M, E)
    return x.index_select(0, place.flatten()).unflatten(0, place.shape).flatten(1, 2)


def _add(total: Tensor, place: Index | Tensor, new: Tensor) -> None:
    """Add to a part of ``total``."""
    if isinstance(place, Tensor):
        # (N, S M, E) -> (N S, M, E)
        new = new.unflatten(1, (-1, total.size(1))).flatten(0, 1)
        total.index_add_(0, place.flatten(), new.to(total.dtype))
    else:
        total[place].add_(new)


def _add_products(totals: list[Tensor], tile: Tile, a: Tensor, b: Tensor) -> None:
    """Add ``a.mT @ b`` to parts of several tensors: (..., M, S of all), (..., M, E) -> (..., S, E) each."""
    start = 0
    for total, place in zip(totals, tile.places, strict=True):
        gathered = isinstance(place, Tensor)
        size = a.size(-1) if gathered else total[place].size(-2)
        part, start = a[..., start : start + size].mT, start + size
        if gathered or a.dim() != 3 or a.dtype != total.dtype:
            _add(total, place, part @ b)
        else:
            # No copy of the product.
            total[place].baddbmm_(part, b)


def _products(rows: Tensor, keys: list[Tensor]) -> Tensor:
    """Multiply rows with all keys: (..., M, E), (..., S, E) each -> (..., M, S of all)."""
    if len(keys) == 1:
        return full_precision(rows @ keys[0].mT)
    if rows.dim() != 3:
        return full_precision(torch.cat([rows @ x.mT for x in keys], dim=-1))
    # Keys are not copied to stand beside each other: that would take as long as the product.
    sizes = [x.size(-2) for x in keys]
    products = rows.new_empty(*rows.shape[:-1], sum(sizes))
    for part, x in zip(products.split(sizes, dim=-1), keys, strict=True):
        torch.matmul(rows, x.mT, out=part)
    return full_precision(products)


def _mixed(weights: Tensor, values: list[Tensor]) -> Tensor:
    """Sum values by weights: (..., M, S of all), (..., S, E) each -> (..., M, E)."""
    parts = weights.to(values[0].dtype).split([x.size(-2) for x in values], dim=-1)
    mixed, *others = (part @ x for part, x in zip(parts, values, strict=True))
    for more in others:
        mixed += more
    return mixed


def _dropout(work: _Work, q: Tensor) -> Callable[[Tensor], tuple[Tensor | None, float]]:
    """Return what draws which weights are kept, and the factor that keeps their mean."""
    generator = torch.Generator("cpu").manual_seed(work.seed) if draws_bernoulli(q) else None

    def draw(weights: Tensor) -> tuple[Tensor | None, float]:
        if not work.dropout:
            return None, 1.0
        if generator is None:
            return torch.rand_like(weights) >= work.dropout, 1 / (1 - work.dropout)
        return bernoulli_samples(weights.shape, work.dropout, generator, weights.dtype)

    return draw


def _compute(work: _Work, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    mixed, total = _shapes_alone(q, k, v, 0, work.totals)
    keys, values = work.sources(k, "further_k"), work.sources(v, "further_v")
    with work.undisturbed(q):
        pieces = work.pieces(q)
        for tile, attend in pieces or ():
            mixed[tile.queries] = attend(q[tile.queries], _seen(keys, tile), _seen(values, tile), work.dropout)
        draw = _dropout(work, q)
        for read in _reads(work, q, keys, work.prepared(q)) if pieces is None else ():
            if read.highest is not None:
                total[read.tile.queries] = read.highest - read.weights.amax(dim=-1, keepdim=True).log()
            kept, scale = draw(read.weights)
            weights = read.weights if kept is None else read.weights.mul_(kept)
            mixed[read.tile.queries] = _mixed(weights, _seen(values, read.tile)).mul_(scale)
    return mixed, total


_PRESENT: ContextVar[_Work] = ContextVar("present")


@torch.library.custom_op("pyramidions::tiled_attention", mutates_args=())
def _operator(q: Tensor, k: Tensor, v: Tensor, operations: int, totals: bool) -> tuple[Tensor, Tensor]:
    """An operator of its own, so that who counts multiplications sees the same on all devices."""
    return _compute(_PRESENT.get(), q, k, v)


@_operator.register_fake
def _shapes_alone(q: Tensor, k: Tensor, v: Tensor, operations: int, totals: bool) -> tuple[Tensor, Tensor]:
    mixed = torch.empty_like(q, dtype=v.dtype) if q.size(-1) == v.size(-1) else v.new_empty(*q.shape[:-1], v.size(-1))
    return mixed, full_precision(q.new_empty(*q.shape[:-1], int(totals)))


@register_flop_formula(torch.ops.pyramidions.tiled_attention, get_raw=True)
def _operations(q: Tensor, k: Tensor, v: Tensor, operations: int, *_: Any, **__: Any) -> int:
    return operations


class _Sides(NamedTuple):
    """What attention reads, or the gradients of it."""

    q: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    prepared: Sequence[Tensor]  # what a score mod reads


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, work: _Work, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(q, k, v, *tensors)
        ctx.work, filled = work, work.filled(tensors)
        token = _PRESENT.set(filled)
        try:
            mixed, total = torch.ops.pyramidions.tiled_attention(q, k, v, filled.operations(q, v), work.totals)
        finally:
            _PRESENT.reset(token)
        if not work.totals:
            ctx.mark_non_differentiable(total)
        return mixed, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_mixed: Tensor, of_total: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *kept = ctx.saved_tensors
        tensors = [x.detach().requires_grad_(need) for x, need in zip(kept, ctx.needs_input_grad[4:], strict=True)]
        work = ctx.work.filled(tensors)
        with torch.enable_grad():
            prepared = work.prepared(q)
        given = _Sides(q, work.sources(k, "further_k"), work.sources(v, "further_v"), prepared)
        # In the order of their memory, so that no view that follows has to copy them.
        sums = ([torch.zeros_like(full_precision(x.detach())) for x in side] for side in given[1:])
        grads = _Sides(torch.empty_like(q), *sums)
        with work.undisturbed(q):
            pieces = work.pieces(q)
            if pieces is None:
                _gradients_of_tiles(work, given, grads, of_mixed, of_total)
            else:
                _gradients_of_pieces(pieces, work.dropout, given, grads, of_mixed)
        of_k, of_v, by_input = grads.keys[0], grads.values[0], {}
        if len(grads.keys) > 1:
            by_input = {ctx.work.plan.further_k: grads.keys[1], ctx.work.plan.further_v: grads.values[1]}
        learned = [n for n in ctx.work.score_mod or () if isinstance(n, _Kept) and tensors[n].requires_grad]
        if learned:
            made = [(x, grad) for x, grad in zip(prepared, grads.prepared, strict=True) if x.requires_grad]
            outs, of_outs = zip(*made, strict=True)
            by_input |= zip(learned, torch.autograd.grad(outs, [tensors[n] for n in learned], of_outs), strict=True)
        rest = (by_input[n].to(x.dtype) if n in by_input else None for n, x in enumerate(tensors))
        return None, grads.q, of_k.to(k.dtype), of_v.to(v.dtype), *rest


def _gradients_of_tiles(work: _Work, given: _Sides, grads: _Sides, of_mixed: Tensor, of_total: Tensor) -> None:
    draw, root = _dropout(work, given.q), given.q.size(-1) ** -0.5
    for tile, leaves, content, added, keys, _, weights in _reads(
        work, given.q, given.keys, given.prepared, learns=True
    ):
        kept, scale = draw(weights)
        of_out = _cast(of_mixed[tile.queries]).to(keys[0].dtype) * scale
        mixed = weights if kept is None else weights * kept
        # The softmax's backward pass: of weight times gradient, the weight's share of the sum over keys is subtracted.
        of_scores = _products(of_out, _seen(given.values, tile)).mul_(mixed)
        share = of_scores.sum(dim=-1, keepdim=True)
        if work.totals:
            share -= of_total[tile.queries]
        of_scores.addcmul_(share, weights, value=-1)
        low = of_scores.to(content.dtype)
        _add_products(grads.keys, tile, low, content.detach() * root)
        _add_products(grads.values, tile, mixed.to(of_out.dtype), of_out)
        of_content = _mixed(low, keys) * root
        if leaves:
            outs, of_outs = [content], [of_content]
            if added is not None and added.requires_grad:
                outs.append(added)
                of_outs.append(of_scores.sum_to_size(added.shape).to(added.dtype))
            of_content, *rest = torch.autograd.grad(outs, [x for x in leaves if x.requires_grad], of_outs)
            parts = zip(work.score_mod.beside(tile, grads.prepared), leaves[1:], strict=True)
            for (total, place), new in zip((part for part, leaf in parts if leaf.requires_grad), rest, strict=True):
                total[place] += new
        grads.q[tile.queries] = of_content


def _gradients_of_pieces(
    pieces: Iterator[tuple[Tile, Attend]], dropout: float, given: _Sides, grads: _Sides, of_mixed: Tensor
) -> None:
    for tile, attend in pieces:
        seen = given.q[tile.queries], *_seen(given.keys, tile), *_seen(given.values, tile)
        q, *beside = own = [x.detach().requires_grad_() for x in seen]
        with torch.enable_grad():
            out = attend(q, beside[: len(tile.places)], beside[len(tile.places) :], dropout)
        grads.q[tile.queries], *rest = torch.autograd.grad(out, own, of_mixed[tile.queries])
        for total, place, new in zip(grads.keys + grads.values, tile.places * 2, rest, strict=True):
            _add(total, place, new)

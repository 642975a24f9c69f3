"""Attention with a bias for each distance: a few rows at a time beside the keys that they see, on any device."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.flop_counter import register_flop_formula

from pyramidions.nn.functional.attention import full_precision
from pyramidions.nn.functional.dropout import drawn_from, drop, new_seed
from pyramidions.nn.functional.local_window import computes_in_tiles

#: added to the scores of keys that a query must not see; finite, for a padded query may see nothing else
UNSEEN = torch.finfo(torch.float32).min / 2
_ROWS = 64  # queries of a piece on the CPU: more of them see more keys in vain, fewer multiply smaller matrices
_WEIGHTS = 2**19  # in memory at a time: what its caches hold
_WEIGHTS_OF_GPU = 2**24


class Attended(NamedTuple):
    """What queries read.

    Attributes:
        mixed: (B, H, L, E).
        total: log-sum-exp of their scores, (B, H, L, 1), in float32 or better.
    """

    mixed: Tensor
    total: Tensor


def attend_by_distance(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, bias: Tensor, dropout: float = 0.0) -> Attended:
    """Attend to the keys at most R positions away, with a bias of the scores for each distance.

    Memory grows linearly with the length. For the backward pass only the arguments are kept: it computes the weights
    again. Gradients reach the bias.

    Args:
        q: (B, H, L, E).
        k: (B, H, L, E).
        v: (B, H, L, E).
        hidden: (B, L), True at keys that no query sees.
        bias: (H, 2R + 1) or (1, 2R + 1) for all heads, of the distances -R to R from a query to a key; `UNSEEN` where
            nothing is seen.
        dropout: probability of dropping an attention weight.
    """
    # A seed, instead of a mask that is as large as the matrix of weights.
    seed = new_seed() if dropout and not q.is_meta else 0
    return Attended(*_ByDistance.apply(q, k, v, hidden, bias, dropout, seed))


def joined(first: Attended, second: Attended) -> Attended:
    """Join what the same queries read of two disjoint sets of keys, by the log-sum-exp of their scores."""
    total = torch.logaddexp(first.total, second.total)
    mixed = (first.total - total).exp() * first.mixed + (second.total - total).exp() * second.mixed
    return Attended(mixed.to(first.mixed.dtype), total)


def received_by_distance(q: Tensor, k: Tensor, hidden: Tensor, left_out: Tensor, bias: Tensor, total: Tensor) -> Tensor:
    """Return how much attention keys receive in `attend_by_distance`, over all heads and queries.

    Args:
        q: (B, H, L, E).
        k: (B, H, L, E).
        hidden: (B, L), True at keys that no query sees.
        left_out: (B, L), True at queries that do not count.
        bias: as there.
        total: (B, H, L, 1), log-sum-exp of all scores of a query, with those of other keys that it sees.

    Returns:
        (B, L), in float32.
    """
    received = torch.zeros(hidden.shape, dtype=torch.float32, device=k.device)
    band = _band(bias, _rows(q.size(2), bias, on_gpu=True))
    for piece in _pieces(q.shape, bias, on_gpu=True):
        scores = _scores(q[piece.queries], k[piece.keys], hidden[piece.seen], band[piece.band])
        weights = scores.sub_(total[piece.queries]).exp_()
        weights = weights.masked_fill_(left_out[piece.documents, piece.rows][:, None, :, None], 0.0)
        received[piece.seen] += weights.sum(dim=(1, 2))
    return received


class _Piece(NamedTuple):
    documents: slice
    heads: slice
    rows: slice  # queries
    span: slice  # keys that the first or last of them sees
    band: tuple[slice, slice, slice]  # their part of the bias

    @property
    def queries(self) -> tuple[slice, slice, slice]:
        return self.documents, self.heads, self.rows

    @property
    def keys(self) -> tuple[slice, slice, slice]:
        return self.documents, self.heads, self.span

    @property
    def seen(self) -> tuple[slice, slice]:
        return self.documents, self.span


def _rows(length: int, bias: Tensor, on_gpu: bool) -> int:
    """Return how many queries a piece has at most."""
    reach = bias.size(1) // 2
    rows = max(_ROWS, min(2 * reach, _WEIGHTS_OF_GPU // min(length, 4 * reach + 1))) if on_gpu else _ROWS
    return min(rows, length)


def _pieces(shape: torch.Size, bias: Tensor, on_gpu: bool) -> Iterator[_Piece]:
    """Cut the band of weights of queries of a shape (B, H, L, E)."""
    batch, heads, length, _ = shape
    reach, rows = bias.size(1) // 2, _rows(length, bias, on_gpu)
    budget = (_WEIGHTS_OF_GPU if on_gpu else _WEIGHTS) // (rows * min(length, rows + 2 * reach))
    together = max(1, min(heads, budget))
    documents = max(1, budget // heads)
    for document, head, row in product(range(0, batch, documents), range(0, heads, together), range(0, length, rows)):
        group = slice(head, min(heads, head + together))
        queries = slice(row, min(length, row + rows))
        span = slice(max(0, row - reach), min(length, queries.stop + reach))
        first = span.start - row + reach
        band = (
            group if bias.size(0) > 1 else slice(0, 1),
            slice(0, queries.stop - row),
            slice(first, first + span.stop - span.start),
        )
        yield _Piece(slice(document, min(batch, document + documents)), group, queries, span, band)


def _band(bias: Tensor, rows: int) -> Tensor:
    """Write the bias beside each of so many queries: (H, 2R + 1) -> (H, M, M + 2R), `UNSEEN` where nothing is said."""
    distances = bias.size(1)
    offset = torch.arange(rows + distances - 1, device=bias.device) - torch.arange(rows, device=bias.device)[:, None]
    said = (offset >= 0) & (offset < distances)
    return full_precision(bias)[:, offset.clamp(0, distances - 1)].masked_fill(~said, UNSEEN)


def _scores(q: Tensor, k: Tensor, hidden: Tensor, band: Tensor) -> Tensor:
    """(B, H, M, E), (B, H, S, E), (B, S), (H, M, S) -> (B, H, M, S)."""
    if computes_in_tiles(q):
        q, k = full_precision(q), full_precision(k)
    # In place: each pass over the scores takes about as long as the product.
    scores = full_precision((q * q.size(-1) ** -0.5) @ k.transpose(-1, -2)).add_(band)
    return scores.masked_fill_(hidden[:, None, None], UNSEEN)


def _attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, band: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
    scores = _scores(q, k, hidden, band)
    highest = scores.detach().amax(dim=-1, keepdim=True)
    shares = scores.sub_(highest).exp_()
    total, values = shares.sum(dim=-1, keepdim=True), full_precision(v) if computes_in_tiles(v) else v
    if values.dtype.itemsize < total.dtype.itemsize:
        # Sums of values by shares that are not normalised leave the range of half precision.
        mixed = drop(shares.div_(total), dropout).to(values.dtype) @ values
    else:
        mixed = (drop(shares, dropout) @ values) / total
    return mixed.to(v.dtype), highest + total.log()


class _ByDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, Tensor]:
        *tensors, dropout, seed = given
        ctx.save_for_backward(*tensors)
        ctx.options = dropout, seed
        mixed, total = torch.ops.pyramidions.attend_by_distance(*given)
        return mixed, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_mixed: Tensor, of_total: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, hidden, bias = ctx.saved_tensors
        dropout, seed = ctx.options
        learns = ctx.needs_input_grad[4]
        on_gpu = not computes_in_tiles(q)
        band = _band(bias, _rows(q.size(2), bias, on_gpu))
        sums = [torch.zeros_like(full_precision(x)) for x in (q, k, v, band)]
        with torch.autocast(q.device.type, enabled=False), drawn_from(seed, q.device, dropout):
            for piece in _pieces(q.shape, bias, on_gpu):
                places = piece.queries, piece.keys, piece.keys, piece.band
                own = [x[place].detach().requires_grad_() for x, place in zip((q, k, v, band), places, strict=True)]
                rows, keys, values, bias_beside = own
                with torch.enable_grad():
                    out = _attend(rows, keys, values, hidden[piece.seen], bias_beside, dropout)
                found = torch.autograd.grad(out, own[: 3 + learns], (of_mixed[piece.queries], of_total[piece.queries]))
                for total, place, new in zip(sums, places, found, strict=False):
                    total[place] += new
        of_bias = None
        if learns:
            with torch.enable_grad():
                table = bias.detach().requires_grad_()
                (of_bias,) = torch.autograd.grad(_band(table, band.size(1)), table, sums[3])
        return *(total.to(x.dtype) for total, x in zip(sums, (q, k, v), strict=False)), None, of_bias, None, None


@torch.library.custom_op("pyramidions::attend_by_distance", mutates_args=())
def _attend_by_distance(
    q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, bias: Tensor, dropout: float, seed: int
) -> tuple[Tensor, Tensor]:
    """An operator of its own, so that who counts multiplications sees the same on all devices."""
    mixed, total = _shapes_alone(q, k, v, hidden, bias, dropout, seed)
    on_gpu = not computes_in_tiles(q)
    band = _band(bias, _rows(q.size(2), bias, on_gpu))
    with torch.autocast(q.device.type, enabled=False), drawn_from(seed, q.device, dropout):
        for piece in _pieces(q.shape, bias, on_gpu):
            seen = k[piece.keys], v[piece.keys], hidden[piece.seen]
            mixed[piece.queries], total[piece.queries] = _attend(q[piece.queries], *seen, band[piece.band], dropout)
    return mixed, total


@_attend_by_distance.register_fake
def _shapes_alone(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    mixed = v.new_empty(*q.shape[:3], v.size(3))
    return mixed, full_precision(q.new_empty(*q.shape[:3], 1))


@register_flop_formula(torch.ops.pyramidions.attend_by_distance, get_raw=True)
def _operations(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, bias: Tensor, *_: Any, **__: Any) -> int:
    """Return the operations of scores and mixes, in pieces as on a GPU."""
    spans = ((*piece.queries, piece.span) for piece in _pieces(q.shape, bias, on_gpu=True))
    weights = sum(math.prod(part.stop - part.start for part in spanned) for spanned in spans)
    return 2 * weights * (q.size(3) + v.size(3))

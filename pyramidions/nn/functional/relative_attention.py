"""Attention with learned scores of distances: a few rows at a time beside the keys that they see, on any device."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.flop_counter import register_flop_formula

from pyramidions.nn.functional.attention import full_precision, mix
from pyramidions.nn.functional.distance_attention import UNSEEN
from pyramidions.nn.functional.dropout import bernoulli_samples, drawn_from, draws_bernoulli, new_seed
from pyramidions.nn.functional.local_window import computes_in_tiles

_ROWS = 64  # queries of a tile at least: more of them see more keys in vain, fewer multiply smaller matrices
_WEIGHTS = 2**19  # in memory at a time: what caches hold
_WEIGHTS_OF_GPU = 2**24


def relative_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    distances: Tensor,
    content_bias: Tensor,
    position_bias: Tensor,
    hidden: Tensor | None = None,
    dropout: float = 0.0,
    *,
    is_causal: bool = False,
) -> Tensor:
    """Attend with scores ((q_i + u) k_j + (q_i + w) r_(i - j)) / sqrt(E) (Dai et al. 2019, section 3.3).

    Memory grows linearly with the length. For the backward pass only the arguments are kept: it computes the weights
    again.

    Args:
        q: (B, H, L, E).
        k: (B, H, L, E).
        v: (B, H, L, E).
        distances: r, (H, N, E), of the distances L - 1 down to 0 if causal, and else down to 1 - L.
        content_bias: u, (H, E).
        position_bias: w, (H, E).
        hidden: (B, L), True at keys that no query sees, or None.
        dropout: probability of dropping an attention weight.
        is_causal: query i sees keys up to i.

    Returns:
        (B, H, L, E).
    """
    if is_causal:
        # Rows of a tile have keys in common, some of which come after the first of them.
        distances = F.pad(distances, (0, 0, 0, _rows(q, not computes_in_tiles(q)) - 1))
    # A seed, instead of a mask that is as large as the matrix of weights.
    seed = new_seed() if dropout and not q.is_meta else 0
    mixed: Tensor = _RelativeAttention.apply(
        q, k, v, distances, content_bias, position_bias, hidden, dropout, is_causal, seed
    )
    return mixed


class _Tile(NamedTuple):
    documents: slice
    heads: slice
    rows: slice  # queries
    span: slice  # keys that the last of them sees
    distances: slice  # from the last row to the first key, down to those from the first row to the last key

    @property
    def queries(self) -> tuple[slice, slice, slice]:
        return self.documents, self.heads, self.rows

    @property
    def keys(self) -> tuple[slice, slice, slice]:
        return self.documents, self.heads, self.span

    @property
    def between(self) -> tuple[slice, slice]:
        return self.heads, self.distances


def _rows(q: Tensor, on_gpu: bool) -> int:
    """Return how many of the queries (B, H, L, E) a tile has at most."""
    batch, heads, length, _ = q.shape
    rows = max(_ROWS, _WEIGHTS_OF_GPU // (batch * heads * length)) if on_gpu else _ROWS
    return min(rows, length)


def _tiles(q: Tensor, is_causal: bool, on_gpu: bool) -> Iterator[_Tile]:
    """Cut the matrices of weights of queries (B, H, L, E)."""
    batch, heads, length, _ = q.shape
    rows = _rows(q, on_gpu)
    for start in range(0, length, rows):
        stop = min(length, start + rows)
        seen = stop if is_causal else length
        budget = (_WEIGHTS_OF_GPU if on_gpu else _WEIGHTS) // ((stop - start) * seen)
        together, documents = max(1, min(heads, budget)), max(1, budget // heads)
        distances = slice(length - stop, length - start + seen - 1)
        for document in range(0, batch, documents):
            for head in range(0, heads, together):
                yield _Tile(
                    slice(document, min(batch, document + documents)),
                    slice(head, min(heads, head + together)),
                    slice(start, stop),
                    slice(0, seen),
                    distances,
                )


def _shifted(by_distance: Tensor, keys: int) -> Tensor:
    """Return of each row what belongs to its distances to the keys, a view: (B, H, M, M + S - 1) -> (B, H, M, S)."""
    *leading, rows, _ = by_distance.shape
    *strides, along, one = by_distance.stride()
    # A row's distance to the first key is one less than that of the row after it.
    offset = by_distance.storage_offset() + (rows - 1) * one
    return by_distance.as_strided((*leading, rows, keys), (*strides, along - one, one), offset)


class _Read(NamedTuple):
    """What a tile computes with, in float32 or better on a CPU."""

    content: Tensor  # (B, H, M, E), scaled queries with the bias of contents
    position: Tensor  # (B, H, M, E), with that of positions
    k: Tensor  # (B, H, S, E)
    v: Tensor  # (B, H, S, E)
    distances: Tensor  # (H, M + S - 1, E)
    weights: Tensor  # (B, H, M, S)
    dropped: Tensor | None
    scale: float  # of weights that are not dropped


def _read(
    tile: _Tile,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    distances: Tensor,
    content_bias: Tensor,
    position_bias: Tensor,
    hidden: Tensor | None,
    dropout: float,
    is_causal: bool,
) -> _Read:
    rows, keys, values, r = q[tile.queries], k[tile.keys], v[tile.keys], distances[tile.between]
    if computes_in_tiles(q):
        rows, keys, values, r = (full_precision(x) for x in (rows, keys, values, r))
    root = q.size(-1) ** -0.5
    content, position = (
        ((rows + bias[tile.heads, None]) * root).to(keys.dtype) for bias in (content_bias, position_bias)
    )
    scores = full_precision(content @ keys.mT)
    # In place: each pass over the scores takes about as long as the product.
    scores.add_(_shifted(position @ r.mT, keys.size(2)))
    if is_causal:
        count = tile.rows.stop - tile.rows.start
        later = torch.ones(count, count, dtype=torch.bool, device=q.device).triu(1)
        scores[..., tile.rows].masked_fill_(later, UNSEEN)
    if hidden is not None:
        scores.masked_fill_(hidden[tile.documents, None, None, tile.span], UNSEEN)
    weights = scores.softmax(dim=-1)
    dropped, scale = None, 1.0
    if dropout and draws_bernoulli(q):
        dropped, scale = bernoulli_samples(weights.shape, dropout)
    elif dropout:
        dropped, scale = torch.rand_like(weights) < dropout, 1 / (1 - dropout)
    return _Read(content, position, keys, values, r.to(keys.dtype), weights, dropped, scale)


class _RelativeAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *tensors, dropout, is_causal, seed = given
        ctx.save_for_backward(*tensors)
        ctx.options = dropout, is_causal, seed
        mixed: Tensor = torch.ops.pyramidions.relative_attention(*given)
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        q, k, v, distances, content_bias, position_bias, hidden = tensors
        dropout, is_causal, seed = ctx.options
        sums = [torch.zeros_like(full_precision(x)) for x in tensors[:6]]
        of_q, of_k, of_v, of_distances, of_content, of_position = sums
        root = grad.size(-1) ** -0.5
        with torch.autocast(grad.device.type, enabled=False), drawn_from(seed, grad.device, dropout):
            for tile in _tiles(q, is_causal, not computes_in_tiles(grad)):
                read = _read(tile, q, k, v, distances, content_bias, position_bias, hidden, dropout, is_causal)
                out = grad[tile.queries].to(read.v.dtype) * read.scale
                mixed = read.weights if read.dropped is None else read.weights.masked_fill(read.dropped, 0.0)
                # The softmax's backward pass: of weight times gradient, the weight's share of the sum is subtracted.
                logits = full_precision(out @ read.v.mT).mul_(mixed)
                logits.addcmul_(logits.sum(dim=-1, keepdim=True), read.weights, value=-1)
                logits = logits.to(read.k.dtype)
                by_distance = logits.new_zeros(*logits.shape[:-1], read.distances.size(1))
                _shifted(by_distance, logits.size(-1)).copy_(logits)
                content, position = (logits @ read.k) * root, (by_distance @ read.distances) * root
                of_q[tile.queries] = content + position
                of_content[tile.heads] += content.sum(dim=(0, 2))
                of_position[tile.heads] += position.sum(dim=(0, 2))
                of_k[tile.keys] += logits.mT @ read.content
                of_v[tile.keys] += mixed.to(out.dtype).mT @ out
                of_distances[tile.between] += (by_distance.mT @ read.position).sum(dim=0)
        return *(total.to(x.dtype) for total, x in zip(sums, tensors, strict=False)), None, None, None, None


@torch.library.custom_op("pyramidions::relative_attention", mutates_args=())
def _relative_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    distances: Tensor,
    content_bias: Tensor,
    position_bias: Tensor,
    hidden: Tensor | None,
    dropout: float,
    is_causal: bool,
    seed: int,
) -> Tensor:
    """An operator of its own, so that who counts multiplications sees the same on all devices."""
    mixed = torch.empty_like(v)
    with torch.autocast(q.device.type, enabled=False), drawn_from(seed, q.device, dropout):
        for tile in _tiles(q, is_causal, not computes_in_tiles(q)):
            read = _read(tile, q, k, v, distances, content_bias, position_bias, hidden, dropout, is_causal)
            mixed[tile.queries] = mix(read.weights.to(read.v.dtype), read.dropped, read.scale, read.v)
    return mixed


@_relative_attention.register_fake
def _shapes_alone(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
    return torch.empty_like(v)


@register_flop_formula(torch.ops.pyramidions.relative_attention, get_raw=True)
def _operations(q: Tensor, *given: Any, **__: Any) -> int:
    """Return the operations of both scores and of mixes, in tiles as on a GPU."""
    is_causal, operations = given[7], 0
    for tile in _tiles(q, is_causal, on_gpu=True):
        matrices = (tile.documents.stop - tile.documents.start) * (tile.heads.stop - tile.heads.start)
        rows, distances = tile.rows.stop - tile.rows.start, tile.distances.stop - tile.distances.start
        operations += 2 * matrices * rows * q.size(3) * (2 * tile.span.stop + distances)
    return operations

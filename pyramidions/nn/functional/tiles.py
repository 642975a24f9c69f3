"""Plans of tiled attention, which say what a tile of queries reads, and functions of its scores."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.functional.precision import full_precision

#: added to the scores of keys that a query must not see; finite, for a padded query may see nothing else, and a few of
#: them still are
UNSEEN = torch.finfo(torch.float32).min / 8
_ROWS = 64  # queries of a tile beside a window: more of them see more keys in vain, fewer multiply smaller matrices
_WEIGHTS = 2**19  # in memory at a time: what the caches of a CPU hold
_WEIGHTS_OF_GPU = 2**24

Index = tuple[Any, ...]


class Tile(NamedTuple):
    """A part of the matrices of weights."""

    lead: Index  # which matrices, an index of the leading dimensions
    rows: slice  # which queries
    span: slice  # which keys, in the order of the text
    # of the keys in each tensor that holds some: an index, or the numbers of blocks (N, S)
    places: tuple[Index | Tensor, ...]

    @property
    def queries(self) -> Index:
        """Return the index of the queries."""
        return (*self.lead, ..., self.rows, slice(None))

    @property
    def heads(self) -> slice:
        """Return which heads, of (B, H, L, E)."""
        return self.lead[1] if len(self.lead) > 1 else slice(None)

    def queries_in(self, shape: Sequence[int]) -> int:
        """Return how many queries of a ``shape`` (..., Lq, E) it has, of all matrices."""
        matrices = (part.stop - part.start for part in self.lead if isinstance(part, slice))
        return math.prod(matrices) * math.prod(shape[len(self.lead) : -2]) * (self.rows.stop - self.rows.start)


#: of a tile: what is added to its scores or the last of them, broadcastable to (..., M, S), or None
Bias = Callable[[Tile], Tensor | None]


class Plan(Protocol):
    """Which keys each query reads."""

    def rows(self, shape: Sequence[int], on_gpu: bool) -> int:
        """Return how many queries of a ``shape`` (..., Lq, E) a tile has at most."""

    def tiles(self, shape: Sequence[int], on_gpu: bool) -> Iterator[Tile]:
        """Cut the weights of queries of such a ``shape``."""

    def bias(self, q: Tensor, on_gpu: bool) -> Bias:
        """Return what hides keys of each tile."""

    def operations(self, q: Tensor) -> int:
        """Return the operations of scores and mixes on a GPU."""


def computes_in_tiles(x: Tensor) -> bool:
    """Say whether attention from ``x`` is computed in small tiles; a GPU takes large ones, or has fused kernels."""
    return x.device.type == "cpu"


def hiding(hidden: Tensor, like: Tensor) -> Tensor:
    """Return what is added to scores: `UNSEEN` where ``hidden``, 0 elsewhere."""
    return full_precision(like[:0]).new_zeros(hidden.shape).masked_fill(hidden, UNSEEN)


def _matrices(leading: Sequence[int], weights: int, on_gpu: bool) -> Iterator[Index]:
    """Cut ``leading`` dimensions into pieces of about a tile, where a matrix has so many ``weights``."""
    inner, budget = math.prod(leading[1:]) * weights, _WEIGHTS_OF_GPU if on_gpu else _WEIGHTS
    # Documents share a tile where theirs are so small that calls would count; products of one are faster.
    if len(leading) > 1 and inner >= budget // 8:
        for number in range(leading[0]):
            for rest in _matrices(leading[1:], weights, on_gpu):
                yield (number, *rest)
    else:
        together = max(1, budget // inner)
        for start in range(0, leading[0], together):
            yield (slice(start, min(leading[0], start + together)),)


class Dense(NamedTuple):
    """Every query reads every key that it may."""

    keys: int  # how many there are
    # broadcastable to (..., Lq, Lk), True where attention is allowed, or what is added to scores; or None
    allowed: Tensor | None = None
    is_causal: bool = False  # query i sees keys up to i

    def rows(self, shape: Sequence[int], on_gpu: bool) -> int:
        *leading, length, _ = shape
        if on_gpu:
            return min(length, max(_ROWS, _WEIGHTS_OF_GPU // (math.prod(leading) * self.keys)))
        return min(length, _ROWS if self.is_causal else max(1, _WEIGHTS // self.keys))

    def tiles(self, shape: Sequence[int], on_gpu: bool) -> Iterator[Tile]:
        *leading, length, _ = shape
        rows = self.rows(shape, on_gpu)
        for start in range(0, length, rows):
            stop = min(length, start + rows)
            span = slice(0, stop if self.is_causal else self.keys)
            for lead in _matrices(leading, (stop - start) * span.stop, on_gpu):
                yield Tile(lead, slice(start, stop), span, ((*lead, ..., span, slice(None)),))

    def bias(self, q: Tensor, on_gpu: bool) -> Bias:
        allowed = self.allowed
        if allowed is not None:
            allowed = allowed.expand(*q.shape[:-2], allowed.size(-2), self.keys)

        def of(tile: Tile) -> Tensor | None:
            bias = None
            if self.is_causal:
                # (M, M), of the last keys
                bias = full_precision(q[:0]).new_full((tile.span.stop - tile.rows.start,) * 2, UNSEEN).triu_(1)
            if allowed is not None:
                seen = allowed[(*tile.lead, ..., slice(None) if allowed.size(-2) == 1 else tile.rows, tile.span)]
                seen = hiding(~seen, q) if seen.dtype == torch.bool else seen
                bias = seen if bias is None else F.pad(bias, (tile.rows.start, 0)) + seen
            return bias

        return of

    def operations(self, q: Tensor) -> int:
        return 4 * q.numel() * self.keys


class Band(NamedTuple):
    """Every query reads the keys near it."""

    hidden: Tensor  # (B, L), True at keys that no window shows
    reach: int  # how far a query sees in either direction
    sees_itself: bool = True  # a query sees its own position; without, it does only where it sees nothing else
    ahead: bool = True  # a query sees later positions, too
    further_k: Tensor | None = None  # (B, H, G, E), of keys that every query sees; or None
    further_v: Tensor | None = None  # (B, H, G, E)
    absent: Tensor | None = None  # (B, G), True where a document has no such key

    def rows(self, shape: Sequence[int], on_gpu: bool) -> int:
        length = shape[-2]
        most = min(2 * self.reach, _WEIGHTS_OF_GPU // min(length, 4 * self.reach + 1)) if on_gpu else 0
        return min(length, max(_ROWS, most))

    def tiles(self, shape: Sequence[int], on_gpu: bool) -> Iterator[Tile]:
        *leading, length, _ = shape
        rows, further = self.rows(shape, on_gpu), 0 if self.absent is None else self.absent.size(1)
        for lead in _matrices(leading, rows * (min(length, rows + 2 * self.reach) + further), on_gpu):
            everywhere = ((*lead, ...),) if further else ()
            for start in range(0, length, rows):
                stop = min(length, start + rows)
                span = slice(max(0, start - self.reach), min(length, stop + self.reach * self.ahead))
                yield Tile(lead, slice(start, stop), span, ((*lead, ..., span, slice(None)), *everywhere))

    def bias(self, q: Tensor, on_gpu: bool) -> Bias:
        reach, rows = self.reach, self.rows(q.shape, on_gpu)
        distance = torch.arange(-reach, rows + reach, device=q.device) - torch.arange(rows, device=q.device)[:, None]
        far = distance.abs() > reach
        band = hiding(far if self.ahead else far | (distance > 0), q)
        if not self.sees_itself:
            band.diagonal(reach).fill_(UNSEEN / 2)
        # (B, L) -> (B, 1, 1, L)
        hidden = hiding(self.hidden, q)[:, None, None]
        absent = None if self.absent is None else hiding(self.absent, q)[:, None, None]
        # A GPU is not waited for.
        hides = self.hidden.any(dim=1).tolist() if self.hidden.is_cpu else None

        def of(tile: Tile) -> Tensor:
            first, count = tile.span.start - tile.rows.start + reach, tile.rows.stop - tile.rows.start
            bias = band[:count, first : first + tile.span.stop - tile.span.start]
            documents = tile.lead[0]
            if hides is None or (any(hides[documents]) if isinstance(documents, slice) else hides[documents]):
                bias = bias + hidden[documents, ..., tile.span]
                # A query that sees nothing sees its own position.
                own = bias.diagonal(tile.rows.start - tile.span.start, -2, -1)
                own.clamp_(min=UNSEEN / 2)
            if absent is not None and absent.size(-1):
                # (..., M, S) and (..., 1, G) -> (..., M, S + G)
                far = absent[documents].expand(*absent[documents].shape[:-2], count, -1)
                bias = torch.cat([bias.expand(*far.shape[:-1], -1), far], dim=-1)
            return bias

        return of

    def operations(self, q: Tensor) -> int:
        # Chunks see their neighbours.
        batch, heads, length, dim = q.shape
        further = 0 if self.absent is None else self.absent.size(1)
        return 4 * batch * heads * (length + -length % self.reach) * ((2 + self.ahead) * self.reach + further) * dim


class Blocks(NamedTuple):
    """Blocks of queries (N, M, E) read blocks of keys (K, M, E)."""

    blocks: Tensor  # (N, S), which ones
    allowed: Tensor  # (N, S M), which keys of those, at least one in each row

    def rows(self, shape: Sequence[int], on_gpu: bool) -> int:
        return shape[-2]

    def tiles(self, shape: Sequence[int], on_gpu: bool) -> Iterator[Tile]:
        count, rows, _ = shape
        # Fused kernels hold no weights.
        weights = max(1, rows * self.allowed.size(1) // (4 if on_gpu else 1))
        for lead in _matrices((count,), weights, on_gpu):
            yield Tile(lead, slice(0, rows), slice(0, self.allowed.size(1)), (self.blocks[lead[0]],))

    def bias(self, q: Tensor, on_gpu: bool) -> Bias:
        return lambda tile: hiding(~self.allowed[tile.lead[0]], q)[:, None]

    def operations(self, q: Tensor) -> int:
        return 4 * q.numel() * self.allowed.size(1)


class ScoreMod(Protocol):
    """What makes scores depend on more than contents; its tensors may learn."""

    def prepared(self, rows: int) -> tuple[Tensor, ...]:
        """Return what tiles of at most so many queries read parts of."""

    def beside(self, tile: Tile, prepared: Sequence[Tensor]) -> Iterator[tuple[Tensor, Index]]:
        """Yield each of `prepared` with the place of a tile's part in it."""

    def scores(self, q: Tensor, *parts: Tensor) -> tuple[Tensor, Tensor]:
        """Return what keys are multiplied with, and what is added then: (..., M, E) -> the same, (..., M, S)."""

    def operations(self, tile: Tile) -> int:
        """Return the operations of `scores`, for each query and each dimension."""


class ByDistance(NamedTuple):
    """A bias for each distance."""

    # (H, 2R + 1) or (1, 2R + 1) for all heads, of the distances -R to R from a query to a key; `UNSEEN` where nothing
    # is seen
    bias: Tensor

    def prepared(self, rows: int) -> tuple[Tensor, ...]:
        # (H, 2R + 1) -> (H, M, M + 2R), beside each query
        count = self.bias.size(1)
        offset = torch.arange(rows + count - 1, device=self.bias.device)
        offset = offset - torch.arange(rows, device=self.bias.device)[:, None]
        beyond = (offset < 0) | (offset >= count)
        return (full_precision(self.bias)[:, offset.clamp(0, count - 1)].masked_fill(beyond, UNSEEN),)

    def beside(self, tile: Tile, prepared: Sequence[Tensor]) -> Iterator[tuple[Tensor, Index]]:
        first = tile.span.start - tile.rows.start + self.bias.size(1) // 2
        span = slice(first, first + tile.span.stop - tile.span.start)
        heads = tile.heads if self.bias.size(0) > 1 else slice(0, 1)
        yield prepared[0], (heads, slice(0, tile.rows.stop - tile.rows.start), span)

    def scores(self, q: Tensor, *parts: Tensor) -> tuple[Tensor, Tensor]:
        return q, parts[0]

    def operations(self, tile: Tile) -> int:
        return 0


class ByBlock(NamedTuple):
    """A bias for each distance between the block of a query and a block that is a key."""

    bias: Tensor  # (H, 2S - 1), of the distances 1 - S to S - 1 from the block of a query to a key
    blocks: Tensor  # (B, Lq), the block that each query is in

    def prepared(self, rows: int) -> tuple[Tensor, ...]:
        return full_precision(self.bias), self.blocks

    def beside(self, tile: Tile, prepared: Sequence[Tensor]) -> Iterator[tuple[Tensor, Index]]:
        yield from zip(prepared, ((tile.heads,), (tile.lead[0], tile.rows)), strict=True)

    def scores(self, q: Tensor, *parts: Tensor) -> tuple[Tensor, Tensor]:
        bias, blocks = parts
        middle = self.bias.size(1) // 2
        distances = torch.arange(middle + 1, device=q.device) - blocks[..., None]
        # (H, ..., M, S), of one document or several
        added = bias[:, distances + middle]
        return q, added if added.dim() == 3 else added.transpose(0, 1)

    def operations(self, tile: Tile) -> int:
        return 0


class Relative(NamedTuple):
    """Scores ((q_i + u) k_j + (q_i + w) r_(i - j)) / sqrt(E) (Dai et al. 2019, section 3.3)."""

    distances: Tensor  # r, (H, N, E), of the distances R down to 0 if causal, and else down to -R
    content_bias: Tensor  # u, (H, E)
    position_bias: Tensor  # w, (H, E)
    reach: int  # R, how far a query sees

    def prepared(self, rows: int) -> tuple[Tensor, ...]:
        # Rows of a tile share their keys: some are too far from the last row, or come after the first.
        distances = F.pad(self.distances, (0, 0, rows - 1, rows - 1))
        return distances, self.content_bias[:, None], self.position_bias[:, None]

    def beside(self, tile: Tile, prepared: Sequence[Tensor]) -> Iterator[tuple[Tensor, Index]]:
        # From the last row to the first key, down to those from the first row to the last key.
        zero = self.reach + (prepared[0].size(1) - self.distances.size(1)) // 2
        between = slice(zero - (tile.rows.stop - 1 - tile.span.start), zero - tile.rows.start + tile.span.stop)
        places: tuple[Index, ...] = ((tile.heads, between), (tile.heads,), (tile.heads,))
        yield from zip(prepared, places, strict=True)

    def scores(self, q: Tensor, *parts: Tensor) -> tuple[Tensor, Tensor]:
        distances, content, position = (x.to(q.dtype) for x in parts)
        by_distance = ((q + position) * q.size(-1) ** -0.5) @ distances.mT
        # A view, (..., M, M + S - 1) -> (..., M, S): a row's distance to the first key is one less than the next row's.
        *leading, rows, count = by_distance.shape
        *strides, along, one = by_distance.stride()
        size, stride = (*leading, rows, count - rows + 1), (*strides, along - one, one)
        return q + content, by_distance.as_strided(size, stride, by_distance.storage_offset() + (rows - 1) * one)

    def operations(self, tile: Tile) -> int:
        return 2 * (tile.rows.stop - tile.rows.start + tile.span.stop - tile.span.start - 1)

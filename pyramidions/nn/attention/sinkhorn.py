"""Sinkhorn attention: a bucket attends to itself, and to a learned soft permutation of the others."""

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyramidions.base.arguments import Count
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.functional.attention import scaled_dot_product_attention
from pyramidions.nn.functional.chunking import chunked
from pyramidions.nn.functional.precision import full_type
from pyramidions.nn.options import Length, Positive, Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


def sinkhorn(logits: Tensor, absent: Tensor, iterations: int) -> Tensor:
    """Normalise rows, then columns, and so on (Sinkhorn 1964; Tay et al. 2020, section 3.1.1), in log space.

    (..., N, N) -> the same, not negative. Present columns sum to 1, and rows nearly do; rows and columns that are
    ``absent`` (..., N) are 0. For the backward pass only the logits and vectors are kept: it computes the matrices
    between again.
    """
    return _Sinkhorn.apply(logits, absent, iterations)


class _Sinkhorn(torch.autograd.Function):
    """The matrix after each step is exp(logits + rows + columns), so that two vectors say all that a step changes."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, absent: Tensor, iterations: int) -> Tensor:
        absent = absent.expand(logits.shape[:-1])
        logits = _present(logits, absent)
        columns = logits.new_zeros(logits.shape[:-1])
        steps = [columns]
        for _ in range(iterations):
            rows = (logits + columns[..., None, :]).logsumexp(dim=-1).neg().masked_fill(absent, 0.0)
            columns = (logits + rows[..., None]).logsumexp(dim=-2).neg().masked_fill(absent, 0.0)
            steps += [rows, columns]
        # (2 * iterations + 1, ..., N)
        ctx.save_for_backward(logits, torch.stack(steps))
        return _matrix(logits, steps[-2], columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        logits, steps = ctx.saved_tensors
        of_logits = _matrix(logits, steps[-2], steps[-1]).mul_(grad)
        of_rows, of_columns = of_logits.sum(dim=-1), of_logits.sum(dim=-2)
        for step in range(len(steps) - 1, 0, -2):
            columns, rows, before = steps[step], steps[step - 1], steps[step - 2]
            # columns = -logsumexp over rows of (logits + rows), whose gradient is minus the softmax over them
            part = _matrix(logits, rows, columns).mul_(of_columns[..., None, :])
            of_logits -= part
            of_rows = of_rows - part.sum(dim=-1)
            # rows = -logsumexp over columns of (logits + the columns before)
            part = _matrix(logits, rows, before).mul_(of_rows[..., None])
            of_logits -= part
            of_columns, of_rows = -part.sum(dim=-2), torch.zeros_like(of_rows)
        return of_logits, None, None


def _present(logits: Tensor, absent: Tensor) -> Tensor:
    # Finite: an absent row has nothing else, and a logsumexp of nothing has no gradient. Half, so that sums are finite.
    lowest = torch.finfo(logits.dtype).min / 2
    return logits.masked_fill(absent[..., None] | absent[..., None, :], lowest)


def _matrix(logits: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return exp(logits + rows + columns), in one new tensor."""
    return (logits + rows[..., None]).add_(columns[..., None, :]).exp_()


_LEAST = 1e-6  # is added to scores, whose logarithm must be finite


@ATTENTION.register("sinkhorn")
class SinkhornAttention(CoreAttention):
    """Sparse Sinkhorn attention (Tay et al. 2020, sections 3.1 and 3.2), per head.

    Buckets of positions are compared by their mean queries and keys. Sinkhorn normalisation makes a doubly stochastic
    matrix of the scores, a soft permutation, which mixes buckets of keys and of values. In one softmax a position sees
    its own bucket, and the mixed one. Sorting takes (L / M)^2 scores and L^2 D / M multiplications.

    While training, Gumbel noise from the device's generator is added to the scores. Padded buckets take no part in the
    normalisation. Where buckets are padded, a mixed key is the mean of real ones.

    Args:
        bucket_size: positions in a bucket, M.
        iterations: how often rows and columns are normalised.
        temperature: what logarithms of scores, with their noise, are divided by.
    """

    supports = frozenset({Feature.ITSELF, Feature.RECEIVED})
    wide: ClassVar = {"bucket_size": 64}
    narrow: ClassVar = {"bucket_size": 2}

    def __init__(
        self,
        bucket_size: Length = 64,
        iterations: Count = 7,
        temperature: Positive = 0.7,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        self.bucket_size = bucket_size
        self.iterations = iterations
        self.temperature = temperature
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        batch, heads, length, _ = q.shape
        real = self._real(k, context.padding_mask)
        q, k, v = self._cut(q), self._cut(k, real), self._cut(v, real)
        mixing = _Mixing.of(self.sorting(q, k, real, noisy=self.training), real, k.dtype)
        # (B, H, N, M, E) -> (BH, N, M, E): kernels take four dimensions
        q, k, v = (x.flatten(0, 1) for x in (q, mixing.beside(k), mixing.beside(v)))
        allowed = None if mixing.allowed is None else mixing.allowed.flatten(0, 1)
        out = scaled_dot_product_attention(q, k, v, allowed, self.dropped)
        # (BH, N, M, E) -> (B, H, L, E)
        return out.flatten(1, 2).unflatten(0, (batch, heads))[:, :, :length]

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        """As `CoreAttention.received`, sorting without noise; a mixed key passes on the attention that it receives.

        A position's share in it is its weight in the mixture.
        """
        real = self._real(k, context.padding_mask)
        rows, keys = self._cut(q), self._cut(k, real)
        sorting = self.sorting(rows, keys, real, noisy=False)
        heads = zip(rows.split(1, 1), keys.split(1, 1), sorting.split(1, 1), strict=True)
        # (H, B, N, M) -> (B, L)
        total = torch.stack([_received(*head, real) for head in heads]).sum(dim=0).flatten(1)[:, : k.size(2)]
        mask = context.padding_mask
        return total if mask is None else total.masked_fill(mask, 0.0)

    def sorting(self, q: Tensor, k: Tensor, real: Tensor | None, *, noisy: bool) -> Tensor:
        """Return the weights with which buckets of keys are mixed for each bucket of queries: (B, H, N, N), in float32.

        (B, H, N, M, E) twice, and (B, N, M), False at padding, or None. They are ``noisy`` by Gumbel noise.
        """
        with torch.autocast(q.device.type, enabled=False):
            rows, columns = _means(q, real), _means(k, real)
            scores = (rows @ columns.mT / q.size(-1) ** 0.5).relu()
            logits = (scores + _LEAST).log()
            if noisy:
                noise = torch.empty_like(logits).exponential_().clamp_min_(torch.finfo(logits.dtype).tiny)
                logits = logits - noise.log_()
            absent = logits.new_zeros(1, 1, q.size(2)).bool() if real is None else ~real.any(dim=-1)[:, None]
            return sinkhorn(logits / self.temperature, absent, self.iterations)

    def _real(self, k: Tensor, padding_mask: Tensor | None) -> Tensor | None:
        """Return which positions of buckets are no padding: (B, N, M), or None if all are known to be."""
        size = min(self.bucket_size, k.size(2))
        if padding_mask is None:
            if k.size(2) % size == 0:
                return None
            padding_mask = torch.zeros(k.size(0), k.size(2), dtype=torch.bool, device=k.device)
        return ~chunked(padding_mask, size, dim=1, value=True)

    def _cut(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        # (B, H, L, E) -> (B, H, N, M, E)
        size = min(self.bucket_size, x.size(2))
        x = chunked(x, size, dim=2)
        return x if real is None else x.masked_fill(~real[:, None, ..., None], 0.0)


class _Mixing(NamedTuple):
    """How a bucket of keys or values is joined by a mixture of all."""

    sorting: Tensor  # (B, H, N, N), weights of buckets
    share: Tensor  # (B, H, N, M), how much of a mixed key is of real ones
    allowed: Tensor | None  # (B, H, N, 1, 2M), which keys a bucket sees; None for all

    @classmethod
    def of(cls, sorting: Tensor, real: Tensor | None, dtype: torch.dtype) -> "_Mixing":
        """Return how buckets of a ``dtype`` are mixed that are ``real`` (B, N, M) somewhere, or everywhere if None."""
        whole = sorting.sum(dim=-1, keepdim=True)
        if real is None:
            return cls(sorting, whole, None)
        # (B, H, N, N) @ (B, 1, N, M) -> (B, H, N, M)
        share = sorting @ real[:, None].to(sorting.dtype)
        # A key that is hardly real is none: the gradient divides by the square of its share.
        mixed = share > torch.finfo(dtype).tiny ** 0.5
        allowed = torch.cat([real[:, None].expand_as(mixed), mixed], dim=-1)
        # A bucket of padding sees all of it: its output is never read.
        allowed = allowed | ~allowed.any(dim=-1, keepdim=True)
        return cls(sorting, share.masked_fill(~mixed, 1.0), allowed[..., None, :])

    def beside(self, x: Tensor) -> Tensor:
        """Return buckets with the mixture after them: (B, H, N, M, E) -> (B, H, N, 2M, E)."""
        # (B, H, N, N) @ (B, H, N, ME) -> (B, H, N, M, E)
        mixed = (self.sorting.to(x.dtype) @ x.flatten(-2)).unflatten(-1, x.shape[-2:])
        if self.allowed is not None:
            # As much of it as if there were no padding.
            whole = self.sorting.sum(dim=-1, keepdim=True)
            mixed = mixed * (whole / self.share)[..., None].to(x.dtype)
        return torch.cat([x, mixed], dim=-2)


def _means(x: Tensor, real: Tensor | None) -> Tensor:
    """Return the mean of each bucket's real positions: (B, H, N, M, E) -> (B, H, N, E)."""
    full = full_type(x.dtype)
    if real is None:
        return x.mean(dim=-2, dtype=full)
    # (B, N, M) -> (B, 1, N, M, 1)
    real = real[:, None, ..., None]
    return x.masked_fill(~real, 0.0).sum(dim=-2, dtype=full) / real.sum(dim=-2).clamp_min(1)


def _received(q: Tensor, k: Tensor, sorting: Tensor, real: Tensor | None) -> Tensor:
    """Return what positions receive in one head: (B, 1, N, M, E) x 2, (B, 1, N, N), (B, N, M) -> (B, N, M)."""
    mixing = _Mixing.of(sorting, real, k.dtype)
    # (B, 1, N, M, E) @ (B, 1, N, E, 2M) -> (B, 1, N, M, 2M)
    logits = (q @ mixing.beside(k).mT).float() / q.size(-1) ** 0.5
    if mixing.allowed is not None:
        logits = logits.masked_fill(~mixing.allowed, -torch.inf)
    weights = logits.softmax(dim=-1)
    if real is not None:
        weights = weights.masked_fill(~real[:, None, ..., None], 0.0)
    own, mixed = weights.sum(dim=-2).chunk(2, dim=-1)
    # To each key of a mixture its part: (B, 1, N, N) @ (B, 1, N, M) -> (B, 1, N, M)
    passed_on = sorting.mT @ (mixed / mixing.share)
    return own[:, 0] + (passed_on[:, 0] if real is None else passed_on[:, 0] * real)

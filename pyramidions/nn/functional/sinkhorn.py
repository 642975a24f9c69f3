"""Sinkhorn normalisation: from scores to a matrix whose rows and columns sum to 1."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def sinkhorn(logits: Tensor, absent: Tensor, iterations: int) -> Tensor:
    """Normalise rows, then columns, and so on (Sinkhorn 1964; Tay et al. 2020, section 3.1.1), in log space.

    (..., N, N) -> the same, not negative. Present columns sum to 1, and rows nearly do; rows and columns that are
    ``absent`` (..., N) are 0. For the backward pass only the logits and vectors are kept: it computes the matrices
    between again.
    """
    out: Tensor = _Sinkhorn.apply(logits, absent, iterations)
    return out


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

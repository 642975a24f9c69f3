"""Products with large matrices, read where they lie."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import register_flop_formula

#: oneDNN's linear layer, which reads a matrix where it lies; the usual one copies it piece by piece first.
#: None where torch has none: it is an operator of torch's own, which another version may call otherwise.
_LINEAR = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None


def long_products(x: Tensor, matrix: Tensor) -> Tensor:
    """Multiply as ``F.linear`` does, on a CPU without gradients in up to two thirds of its time: (..., D) -> (..., M).

    That is measured for 4 vectors of 1,024 numbers and 8,192 rows of float32; for 64 vectors it is four fifths. The
    matrix (M, D) has many more rows than there are vectors.
    """
    usual = torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type) or x.dtype != torch.float32
    if _LINEAR is None or not torch.backends.mkldnn.enabled or not x.is_cpu or usual:
        return F.linear(x, matrix)
    return _LINEAR(x, matrix, None, "none", [], "")


if _LINEAR is not None:

    @register_flop_formula(_LINEAR)
    def _operations_of_linear(x: torch.Size, matrix: torch.Size, *_: Any, **__: Any) -> int:
        return 2 * x.numel() * matrix[0]


_GATHERED = 2**22  # numbers of rows that are held at a time
#: The gradient of a weighted sum of rows for its weights is what is computed here. None where torch has no such
#: operator: it is one of its own, which another version may call otherwise.
_ROWS = getattr(torch.ops.aten, "_embedding_bag_per_sample_weights_backward", None)


def row_products(x: Tensor, matrix: Tensor, rows: Tensor) -> Tensor:
    """Multiply each vector (T, D) with rows (T, K) of its own of a matrix (F, D): (T, K), in the precision of autocast.

    On a CPU without gradients rows are read where they are: for one vector, memory for their copies would take as long
    as the products. Otherwise rows of a few vectors at a time are gathered, again in the backward pass.
    """
    if _ROWS is not None and x.is_cpu and not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu"):
        # (T, K), the vector of each row
        owner = torch.zeros_like(rows)
        if x.size(0) > 1:
            owner += torch.arange(x.size(0), device=x.device)[:, None]
        owner, mode_of_sums = owner.flatten(), 0
        products: Tensor = _ROWS(x, matrix, rows.flatten(), owner, owner, mode_of_sums)
        return products.view(rows.shape)
    length = max(1, _GATHERED // (rows.size(1) * x.size(1)))
    if x.size(0) <= length:
        return _gathered(x, matrix, rows)
    chunks = zip(x.split(length), rows.split(length), strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([_gathered(some, matrix, of) for some, of in chunks])
    return torch.cat(
        [
            # Nothing is drawn in it.
            checkpoint(_gathered, some, matrix, of, use_reentrant=False, preserve_rng_state=False)
            for some, of in chunks
        ]
    )


def _gathered(x: Tensor, matrix: Tensor, rows: Tensor) -> Tensor:
    # (T, K) -> (T, K, D)
    gathered = matrix.index_select(0, rows.flatten()).view(*rows.shape, -1)
    # (T, K, D) @ (T, D, 1) -> (T, K)
    return torch.bmm(gathered, x[..., None]).squeeze(-1)


if _ROWS is not None:

    @register_flop_formula(_ROWS)
    def _operations_of_rows(x: torch.Size, matrix: torch.Size, rows: torch.Size, *_: Any, **__: Any) -> int:
        return 2 * rows[0] * matrix[1]

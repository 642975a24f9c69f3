"""Products of vectors with some rows of a matrix."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import register_flop_formula

_GATHERED = 2**22  # numbers of rows that are held at a time
#: The gradient of a weighted sum of rows for its weights is what is computed here. None where torch has no such
#: operator: it is one of its own, which another version may call otherwise.
_IN_PLACE = getattr(torch.ops.aten, "_embedding_bag_per_sample_weights_backward", None)


def row_products(x: Tensor, matrix: Tensor, rows: Tensor) -> Tensor:
    """Multiply each vector (T, D) with rows (T, K) of its own of a matrix (F, D): (T, K), in the precision of autocast.

    On a CPU without gradients rows are read where they are: for one vector, memory for their copies would take as long
    as the products. Otherwise rows of a few vectors at a time are gathered, again in the backward pass.
    """
    if _IN_PLACE is not None and x.is_cpu and not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu"):
        # (T, K), the vector of each row
        owner = torch.zeros_like(rows)
        if x.size(0) > 1:
            owner += torch.arange(x.size(0), device=x.device)[:, None]
        owner, mode_of_sums = owner.flatten(), 0
        products: Tensor = _IN_PLACE(x, matrix, rows.flatten(), owner, owner, mode_of_sums)
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


if _IN_PLACE is not None:

    @register_flop_formula(_IN_PLACE)
    def _operations(x: torch.Size, matrix: torch.Size, rows: torch.Size, *_: Any, **__: Any) -> int:
        return 2 * rows[0] * matrix[1]

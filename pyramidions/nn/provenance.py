"""Which tokens the pooled vectors come from, through all poolings."""

import warnings
from collections.abc import Mapping

import torch
from torch import Tensor

from pyramidions.nn.pooling import Pooled


def provenance(pooled: Mapping[int, Pooled], length: int) -> dict[int, Tensor | None]:
    """Return what each vector is made of after each pooling.

    Poolings are followed, attention is not: a vector counts as its own position, whatever it has read. If a vector
    mixes others, shares are the products of the weights on the way (Pietruszka et al. 2022, section 4: each round mixes
    winners and losers of the one before).

    Args:
        pooled: what each pooler handed on of one document (B = 1), by the number of its layer.
        length: tokens that the encoder read, L.

    Returns:
        By the number of the layer, a sparse matrix (K, L). Its rows sum to 1 if the weights of all poolings do, as in
        all our kinds, and to 0 at padding. None from the first pooling without provenance on.
    """
    found: dict[int, Tensor | None] = {}
    before: Tensor | None = identity(length)
    for layer in sorted(pooled):
        sources, weights = pooled[layer].sources, pooled[layer].weights
        if before is None or sources is None or weights is None:
            before = None
        else:
            before = _product(_matrix(sources[0], weights[0], before.size(0)), before)
        found[layer] = before
    return found


def identity(length: int) -> Tensor:
    """Return the provenance (L, L) of tokens before any pooling: each is made of itself."""
    positions = torch.arange(length)
    return _sparse(positions.expand(2, -1), torch.ones(length), (length, length))


def through(weights: Tensor, made_of: Tensor) -> Tensor:
    """Carry ``weights`` (T, K) of vectors back to the tokens they are ``made_of``, sparse (K, L): (T, L)."""
    return weights @ made_of.to_dense() if _is_full(made_of) else torch.sparse.mm(made_of.t(), weights.t()).t()


def _is_full(matrix: Tensor) -> bool:
    # Sparseness saves nothing in a kind that mixes all vectors into each, by a softmax over the document.
    return matrix._nnz() > matrix.numel() / 8


def _matrix(sources: Tensor, weights: Tensor, length: int) -> Tensor:
    """Turn (K, G) twice into a sparse (K, L), in float32 and on the CPU."""
    sources, weights = sources.cpu(), weights.float().cpu()
    # In many kinds most members have weight 0.
    rows, members = weights.nonzero(as_tuple=True)
    indices = torch.stack([rows, sources[rows, members]])
    return _sparse(indices, weights[rows, members], (len(weights), length))


def _sparse(indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    # A source may be named twice: coalescing adds up.
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True).coalesce()


def _product(a: Tensor, b: Tensor) -> Tensor:
    if _is_full(a):
        return through(a.to_dense(), b).to_sparse()
    with warnings.catch_warnings():
        # torch multiplies in another sparse format, and tells the user that it is in beta.
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse.mm(a, b)

"""What each kind of part costs, in closed form: one small function a kind, by its name in the registry.

Matrix products are counted in multiplications. Letters are those of `pyramidions.nn`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from pyramidions.errors import UserError
from pyramidions.nn.attention import BlockwiseAttention, CrossAttention, EfficientAttention, LSHAttention, SelfAttention
from pyramidions.nn.attention.local_heads import LocalHeads
from pyramidions.nn.pooling import FunnelPooler, MaxPooler, MeanPooler
from pyramidions.nn.projections import DenseProjections

Form = TypeVar("Form")


def closed_form(forms: Mapping[str, Form], kind: str, axis: str) -> Form:
    """Return the closed form of a registered kind.

    Raises:
        UserError: there is none.
    """
    if kind not in forms:
        raise UserError(f"The cost of {axis} {kind!r} has no closed form yet; there is one for {', '.join(forms)}.")
    return forms[kind]


def _full(attention: Any, heads: int, head_dim: int, queries: int, keys: int) -> int:
    return 2 * heads * queries * keys * head_dim


def _blockwise(attention: BlockwiseAttention, heads: int, head_dim: int, queries: int, keys: int) -> int:
    size = min(attention.block_size, queries)
    return _full(attention, heads, head_dim, _padded(queries, size), size)


def _lsh(attention: LSHAttention, heads: int, head_dim: int, queries: int, keys: int) -> int:
    local = min(attention.local.count, heads)
    size = min(attention.bucket_size, queries)
    length = _padded(queries, size)
    # A chunk sees itself and the one before.
    seen = 2 * size if length > size else size
    rounds = attention.num_hashes if queries > attention.bucket_size else 1
    # Half the buckets: the other half are the opposite directions.
    columns = _ceil(queries, 2 * attention.bucket_size)
    hashed = rounds * (heads - local) * length * head_dim * (columns + 2 * seen)
    return hashed + _local(attention.local, local, head_dim, queries)


def _efficient(attention: EfficientAttention, heads: int, head_dim: int, queries: int, keys: int) -> int:
    local = min(attention.local.count, heads)
    return 2 * (heads - local) * queries * head_dim**2 + _local(attention.local, local, head_dim, queries)


def _local(local: LocalHeads, heads: int, head_dim: int, length: int) -> int:
    # Chunks of the window's length see themselves and their neighbours.
    return 2 * heads * _padded(length, local.window) * 3 * local.window * head_dim


#: attention kind -> (attention, heads, head_dim, queries, keys) -> multiplications of scores and mixes in one sequence
ATTENTION_PRODUCTS: dict[str, Callable[[Any, int, int, int, int], int]] = {
    "blockwise": _blockwise,
    "efficient": _efficient,
    "full": _full,
    "lsh": _lsh,
}


class FeedForwardForm(NamedTuple):
    """Of D and ffn_embed_dim: weights and biases, and multiplications of one position."""

    parameters: Callable[[int, int], int]
    products: Callable[[int, int], int]


FEED_FORWARD_FORMS = {
    "dense": FeedForwardForm(lambda dim, inner: 2 * dim * inner + dim + inner, lambda dim, inner: 2 * dim * inner)
}


class ScorerForm(NamedTuple):
    """What a scorer has and does.

    Attributes:
        parameters: of D, weights and biases.
        products: of D, multiplications of each position.
        asks: of the attention before, its blocks and the positions of each, multiplications that it asks for there.
    """

    parameters: Callable[[int], int]
    products: Callable[[int], int]
    asks: Callable[[SelfAttention | CrossAttention, int, int], int] = lambda attention, blocks, size: 0


def _received(attention: SelfAttention | CrossAttention, blocks: int, size: int) -> int:
    """Queries, keys and values once more, and scores without a mix; blocks and positions as the layer before had."""
    projections = cast(DenseProjections, attention.projections)
    dim = projections.q_proj.in_features
    inputs = 2 if projections.k_proj is None else 3
    return blocks * size * (inputs * dim**2 + size * dim)


def _nothing(dim: int) -> int:
    return 0


SCORER_FORMS = {
    "attention": ScorerForm(_nothing, _nothing, _received),
    "embedding": ScorerForm(_nothing, _nothing),
    "index": ScorerForm(_nothing, _nothing),
    "linear": ScorerForm(lambda dim: dim + 1, lambda dim: dim),
    "nonlinear": ScorerForm(lambda dim: dim**2 + 2 * dim + 1, lambda dim: dim**2 + dim),
    "random": ScorerForm(_nothing, _nothing),
}


class PoolingForm(NamedTuple):
    """What a pooler does with L vectors of D dimensions, its scorer aside.

    Attributes:
        hands_on: of the pooler, its configured k and L, how many vectors it hands on, K.
        products: of L, K and D, multiplications in matrix products.
        weighted: of L, K and D, multiplications of a vector's dimensions with a weight, outside of matrix products.
    """

    hands_on: Callable[[Any, int, int], int]
    products: Callable[[int, int, int], int] = lambda length, pooled, dim: 0
    weighted: Callable[[int, int, int], int] = lambda length, pooled, dim: 0


def _at_most_k(pooler: Any, k: int, length: int) -> int:
    return min(length, k)


def _one_a_window(pooler: MeanPooler | MaxPooler | FunnelPooler, k: int, length: int) -> int:
    return _ceil(length, pooler.window)


def tournament_slots(length: int, pooled: int) -> int:
    """Return with how many candidates a tournament begins: the first K 2^p that is not below L."""
    slots = pooled
    while slots < length:
        slots *= 2
    return slots


def _tournament(length: int, pooled: int, dim: int) -> int:
    return tournament_slots(length, pooled) * dim if length > pooled else 0


def _softmaxes(length: int, pooled: int, dim: int) -> int:
    # A (K, L) matrix times the vectors, and times their scores.
    return pooled * length * (dim + 1) if length > pooled else 0


def _mean(length: int, pooled: int, dim: int) -> int:
    return pooled * dim


POOLING_FORMS = {
    "funnel": PoolingForm(_one_a_window, weighted=_mean),
    "gumbel_topk": PoolingForm(_at_most_k, products=_softmaxes),
    "hard_topk": PoolingForm(_at_most_k),
    "iterative_topk": PoolingForm(_at_most_k, products=_softmaxes),
    "max": PoolingForm(_one_a_window),
    "mean": PoolingForm(_one_a_window, weighted=_mean),
    "soft_topk": PoolingForm(_at_most_k, weighted=_tournament),
}


def _ceil(length: int, size: int) -> int:
    return -(-length // size)


def _padded(length: int, multiple: int) -> int:
    return _ceil(length, multiple) * multiple

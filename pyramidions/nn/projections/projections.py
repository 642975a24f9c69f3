"""The role of projections, the registry of kinds, and the way from vectors to heads and back."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.chunking import chunked
from pyramidions.nn.sublayer import LayerContext, State


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, L, D) -> (B, H, L, E)."""
    return x.unflatten(2, (num_heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(B, H, L, E) -> (B, L, D)."""
    return x.transpose(1, 2).flatten(2)


def check_heads(embed_dim: int, num_heads: int) -> None:
    """Raise ValueError if ``embed_dim`` is not divisible by ``num_heads``."""
    if num_heads < 1 or embed_dim % num_heads:
        raise ValueError(f"`embed_dim` ({embed_dim}) must be divisible by `num_heads` ({num_heads}).")


class Projections(nn.Module, ABC):
    """Projects to queries, keys and values, and from the mixed heads to the output of attention.

    Queries, keys and values of a position may read so many positions before it (`look_back`), never later ones; the
    output is always of one position alone.
    """

    #: positions before its own that a position reads; before the first are zeros
    look_back: int = 0
    num_heads: int
    #: None where `output` is an error
    out_proj: nn.Module | None

    @abstractmethod
    def queries(self, x: Tensor) -> Tensor:
        """(B, Lq, D) -> (B, H, Lq, E)."""

    @abstractmethod
    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, Lk, D) -> (B, H, Lk, E) twice."""

    def strided_keys_values(self, x: Tensor, stride: int) -> tuple[Tensor, Tensor]:
        """Return the keys and values of every ``stride``-th position only, of head h those from h mod ``stride`` on.

        (B, Lk, D) -> (B, H, ceil(Lk/s), E) twice, s a divisor of H. Beyond the last position they mean nothing.
        """
        # (B, H, Lk, E) -> (B, H/s, s, Lk/s, s, E): the third is a head's residue, the fifth a position's
        cut = (chunked(each, stride, dim=2).unflatten(1, (-1, stride)) for each in self.keys_values(x))
        # (B, H/s, Lk/s, E, s) -> (B, H, Lk/s, E)
        k, v = (each.diagonal(dim1=2, dim2=4).movedim(-1, 2).flatten(1, 2) for each in cut)
        return k, v

    def output(self, mixed: Tensor) -> Tensor:
        """Join the heads' outputs: (B, H, Lq, E) -> (B, Lq, D)."""
        if self.out_proj is None:
            raise ValueError("These projections have no output.")
        return self.out_proj(join_heads(mixed))

    def reads_unprojected(self, queries: int) -> bool:
        """Return whether so few queries a document had better read vectors by `scores` and `mixed`."""
        return False

    def scores(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return the scores of ``rows`` (B, G, D) with ``x`` (B, L, D), scaled by 1 / sqrt(E): (B, H, G, L)."""
        q, (k, _) = self.queries(rows), self.keys_values(x)
        return q @ k.mT * q.size(-1) ** -0.5

    def mixed(self, weights: Tensor, x: Tensor) -> Tensor:
        """Mix the values of ``x`` (B, L, D) by ``weights`` (B, H, G, L): (B, H, G, E)."""
        return weights @ self.keys_values(x)[1]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of self-attention: (B, L, D) -> (B, H, L, E) three times."""
        return self.queries(x), *self.keys_values(x)

    def new_state(self) -> State | None:
        """Return the state before the first cached step; None if steps need nothing of earlier ones."""
        return None

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> tuple[Tensor, Tensor, Tensor]:
        """Do as `forward` for positions (B, WT, D) that follow those in ``state``, and extend it: (B, H, WT, E) x 3."""
        return self(x)

    def step_queries(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Do as `queries` in a cached step, arguments as in `step`: (B, WT, D) -> (B, H, WT, E)."""
        return self.queries(x)


class SeparateProjections(Projections):
    """A layer for queries, one for keys and one for values, each of a position alone."""

    q_proj: nn.Module
    #: None where queries are keys
    k_proj: nn.Module | None
    v_proj: nn.Module

    def queries(self, x: Tensor) -> Tensor:
        return split_heads(self.q_proj(x), self.num_heads)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self._heads(x, self.q_proj if self.k_proj is None else self.k_proj, self.v_proj)
        return k, v

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.k_proj is None:
            q, v = self._heads(x, self.q_proj, self.v_proj)
            return q, q, v
        q, k, v = self._heads(x, self.q_proj, self.k_proj, self.v_proj)
        return q, k, v

    def _heads(self, x: Tensor, *layers: nn.Module) -> tuple[Tensor, ...]:
        """Apply layers to the same rows: (B, L, D) -> (B, H, L, E) each."""
        return tuple(split_heads(layer(x), self.num_heads) for layer in layers)


PROJECTIONS: Registry[Projections] = Registry("projections")

"""Dense projections."""

import math
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import Range
from pyramidions.nn.functional.chunking import chunked
from pyramidions.nn.functional.kernels import waits_for_host
from pyramidions.nn.projections.projections import PROJECTIONS, SeparateProjections, check_heads, split_heads


class HeadsLinear(nn.Linear):
    """A linear layer to several heads; each may read rows of its own."""

    @property
    def added(self) -> Tensor | None:
        """What is added to the products, (HE,), or None."""
        return self._parameters["bias"]

    @property
    def only_multiplies(self) -> bool:
        """Whether a call is a product and a sum: nothing hangs on the layer, and its weights are plain tensors."""
        hooks = self._forward_pre_hooks, self._forward_hooks, self._backward_pre_hooks, self._backward_hooks
        # Libraries that move weights to and fro replace `forward`.
        return not any(hooks) and "forward" not in vars(self) and type(self.weight) in (Tensor, nn.Parameter)

    def forward(self, x: Tensor, num_heads: int | None = None) -> Tensor:
        """Transform rows (..., D) that all heads read; or with ``num_heads`` H (s, N, D) -> (s, N, D/s).

        Then every s-th head reads one of the s: those with residue 0 the first.
        """
        if num_heads is None:
            return super().forward(x)
        return rows_of_heads(x, self.weight, self.added, num_heads)


def rows_of_heads(x: Tensor, weight: Tensor, bias: Tensor | None, num_heads: int) -> Tensor:
    """Transform the rows of each of several heads, as `HeadsLinear` with ``num_heads``."""

    # (H * E, ...) -> (s, H/s * E, ...)
    def of_residues(each: Tensor) -> Tensor:
        return each.unflatten(0, (num_heads // len(x), len(x), -1)).transpose(0, 1).flatten(1, 2)

    if bias is None:
        return x @ of_residues(weight).mT
    return torch.baddbmm(of_residues(bias)[:, None], x, of_residues(weight).mT)


@PROJECTIONS.register("dense")
class DenseProjections(SeparateProjections):
    """One linear layer for each (Vaswani et al. 2017, section 3.2.2).

    Args:
        joins_heads: it has an output; without, `output` is an error.
        inner_dim: width of all heads together, H * E, divisible by ``num_heads``; 0 for D.
        bias: each layer adds a learned vector.
    """

    q_proj: HeadsLinear
    k_proj: HeadsLinear | None
    v_proj: HeadsLinear

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        shares_query_key: bool = False,
        joins_heads: bool = True,
        inner_dim: Annotated[int, Range(0)] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if not inner_dim:
            check_heads(embed_dim, num_heads)
        elif inner_dim % num_heads:
            raise ValueError(f"`inner_dim` ({inner_dim}) must be divisible by `num_heads` ({num_heads}).")
        inner_dim = inner_dim or embed_dim
        self.num_heads = num_heads
        self.q_proj = HeadsLinear(embed_dim, inner_dim, bias)
        self.k_proj = None if shares_query_key else HeadsLinear(embed_dim, inner_dim, bias)
        self.v_proj = HeadsLinear(embed_dim, inner_dim, bias)
        self.out_proj = nn.Linear(inner_dim, embed_dim, bias) if joins_heads else None
        # As fairseq does: the three input projections as one matrix of 3D x D.
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            if projection is not None:
                nn.init.xavier_uniform_(projection.weight, gain=1 / math.sqrt(2))
        if self.out_proj is not None:
            nn.init.xavier_uniform_(self.out_proj.weight)
            if bias:
                nn.init.zeros_(self.out_proj.bias)

    def _heads(self, x: Tensor, *layers: nn.Module) -> tuple[Tensor, ...]:
        plain = [layer for layer in layers if type(layer) is HeadsLinear and layer.only_multiplies]
        # One product has fewer kernels to start. It keeps the joined weights, and with few rows they cost more than it.
        if not waits_for_host(x) or x.numel() < x.size(-1) ** 2 or len(plain) < len(layers):
            return super()._heads(x, *layers)
        biases = [layer.added for layer in plain if layer.added is not None]
        products = F.linear(x, torch.cat([layer.weight for layer in plain]), torch.cat(biases) if biases else None)
        return tuple(split_heads(part, self.num_heads) for part in products.chunk(len(plain), dim=-1))

    def strided_keys_values(self, x: Tensor, stride: int) -> tuple[Tensor, Tensor]:
        if self._is_wrapped:
            return super().strided_keys_values(x, stride)
        batch, heads = len(x), self.num_heads
        # (B, Lk, D) -> (B, Lk/s, s, D) -> (s, B * Lk/s, D)
        rows = chunked(x, stride, dim=1).movedim(2, 0).flatten(1, 2)
        # (s, B * Lk/s, HE/s) -> (s, B, Lk/s, H/s, E) -> (B, H/s, s, Lk/s, E) -> (B, H, Lk/s, E)
        k, v = (
            each.view(stride, batch, -1, heads // stride, self.q_proj.out_features // heads)
            .permute(1, 3, 0, 2, 4)
            .flatten(1, 2)
            for each in (self._keys(rows, heads), self.v_proj(rows, heads))
        )
        return k, v

    @property
    def _keys(self) -> HeadsLinear:
        return self.q_proj if self.k_proj is None else self.k_proj

    @property
    def _is_wrapped(self) -> bool:
        """Whether a layer stands inside another one, such as an adapter, whose products its weights do not tell."""
        return not all(hasattr(each, "added") for each in (self.q_proj, self._keys, self.v_proj))

    def reads_unprojected(self, queries: int) -> bool:
        # H queries of D numbers instead of one of E, but no D x D products for L keys and L values.
        return not self._is_wrapped and queries * self.num_heads <= self.q_proj.in_features

    def scores(self, rows: Tensor, x: Tensor) -> Tensor:
        # (B, H, G, E), (H, E, D), (H, E)
        q = self.queries(rows)
        q, weight = q * q.size(-1) ** -0.5, self._by_head(self._keys.weight)
        # (B, H, G, D) @ (B, 1, D, L) -> (B, H, G, L)
        asking = torch.einsum("bhge,hed->bhgd", q, weight)
        scores = (asking.flatten(1, 2) @ x.mT).unflatten(1, asking.shape[1:3])
        if (bias := self._keys.added) is None:
            return scores
        # The constant shifts all scores of a row: a softmax is blind to it, but the bias stays in the graph.
        return scores + torch.einsum("bhge,he->bhg", q, self._by_head(bias))[..., None]

    def mixed(self, weights: Tensor, x: Tensor) -> Tensor:
        # (B, HG, L) @ (B, L, D) -> (B, H, G, D); dropped weights need not sum to 1
        vectors = (weights.to(x.dtype).flatten(1, 2) @ x).unflatten(1, weights.shape[1:3])
        mixed = torch.einsum("bhgd,hed->bhge", vectors, self._by_head(self.v_proj.weight))
        if (bias := self.v_proj.added) is None:
            return mixed
        total = weights.sum(dim=-1).to(x.dtype)
        return mixed + torch.einsum("bhg,he->bhge", total, self._by_head(bias))

    def _by_head(self, x: Tensor) -> Tensor:
        # (HE, ...) -> (H, E, ...)
        return x.unflatten(0, (self.num_heads, -1))

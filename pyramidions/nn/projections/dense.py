"""Dense projections."""

import math

from torch import Tensor, nn

from pyramidions.nn.projections.core import PROJECTIONS, Projections


@PROJECTIONS.register("dense")
class DenseProjections(Projections):
    """One linear layer for each (Vaswani et al. 2017, section 3.2.2).

    Args:
        embed_dim: D, divisible by ``num_heads``.
        num_heads: H.
        shares_query_key: keys are projected as queries are.

    Raises:
        ValueError: ``embed_dim`` is not divisible by ``num_heads``.
    """

    def __init__(self, embed_dim: int, num_heads: int, shares_query_key: bool = False) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"`embed_dim` ({embed_dim}) must be divisible by `num_heads` ({num_heads}).")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = None if shares_query_key else nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        # As fairseq does: the three input projections as one matrix of 3D x D.
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            if projection is not None:
                nn.init.xavier_uniform_(projection.weight, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def _heads(self, x: Tensor) -> Tensor:
        # (B, L, D) -> (B, H, L, E)
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def queries(self, x: Tensor) -> Tensor:
        return self._heads(self.q_proj(x))

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        k_proj = self.q_proj if self.k_proj is None else self.k_proj
        return self._heads(k_proj(x)), self._heads(self.v_proj(x))

    def output(self, mixed: Tensor) -> Tensor:
        # (B, H, L, E) -> (B, L, D)
        return self.out_proj(mixed.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.queries(x)
        k = q if self.k_proj is None else self._heads(self.k_proj(x))
        return q, k, self._heads(self.v_proj(x))

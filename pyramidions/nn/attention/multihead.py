"""Multi-head attention: projections and heads around one attention kind."""

import math

from torch import Tensor, nn

from pyramidions.nn.attention.core import CoreAttention


class MultiheadAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2) around a `CoreAttention`.

    Args:
        embed_dim: D, a multiple of ``num_heads``.
        num_heads: H.
        attention: what happens between the heads.

    Raises:
        ValueError: ``embed_dim`` is not a multiple of ``num_heads``.
    """

    def __init__(self, embed_dim: int, num_heads: int, attention: CoreAttention) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"`embed_dim` ({embed_dim}) must be divisible by `num_heads` ({num_heads}).")
        self.num_heads = num_heads
        self.attention = attention
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = None if attention.shares_query_key else nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise as fairseq does: the three input projections as one matrix of 3D x D."""
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            if projection is not None:
                nn.init.xavier_uniform_(projection.weight, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def _heads(self, x: Tensor) -> Tensor:
        # (B, L, D) -> (B, H, L, E)
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project ``x`` (B, L, D) to queries, keys and values, (B, H, L, E) each."""
        q = self._heads(self.q_proj(x))
        k = q if self.k_proj is None else self._heads(self.k_proj(x))
        return q, k, self._heads(self.v_proj(x))

    def _mix(self, q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor | None, is_causal: bool) -> Tensor:
        mixed = self.attention(q, k, v, key_padding_mask, is_causal=is_causal)
        # (B, H, L, E) -> (B, L, D)
        return self.out_proj(mixed.transpose(1, 2).flatten(2))

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Project ``memory`` (B, L, D) to keys and values, (B, H, L, E) each."""
        k_proj = self.q_proj if self.k_proj is None else self.k_proj
        return self._heads(k_proj(memory)), self._heads(self.v_proj(memory))

    def attend(
        self, x: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        """Attend from ``x`` (B, Lq, D) to projected keys and values, (B, H, Lk, E) each; return (B, Lq, D).

        Masks as in `CoreAttention`.
        """
        return self._mix(self._heads(self.q_proj(x)), k, v, key_padding_mask, is_causal)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Self-attention: (B, L, D) -> (B, L, D); masks as in `CoreAttention`."""
        return self._mix(*self._project(x), key_padding_mask, is_causal)

    def received(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return how much self-attention each position of ``x`` (B, L, D) received: (B, L)."""
        q, k, _ = self._project(x)
        return self.attention.received(q, k, padding_mask)

    def weights(self, x: Tensor, memory: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """Return how much ``x`` (B, Lq, D) attends to ``memory`` (B, Lk, D) in each head: (B, H, Lq, Lk)."""
        k, _ = self.keys_values(memory)
        return self.attention.weights(self._heads(self.q_proj(x)), k, key_padding_mask)

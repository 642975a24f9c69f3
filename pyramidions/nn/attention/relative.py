"""Attention that learns from distances, among all positions or in windows."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Count, CountOrZero
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.state import ProjectedDistances
from pyramidions.nn.functional.attention import tiled_attention
from pyramidions.nn.functional.dropout import drop
from pyramidions.nn.functional.interleaving import (
    check_dilation,
    head_groups,
    in_order,
    in_window,
    interleaved,
    interleaved_mask,
)
from pyramidions.nn.functional.masking import distances_back, padding_of
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.functional.sinusoids import sinusoids
from pyramidions.nn.functional.tiles import Band, Dense, Plan, Relative, hiding
from pyramidions.nn.options import Probability, Window
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, State


class Distances(nn.Module):
    """What all layers of a model share: the biases of queries, and sinusoids of distances."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % 2:
            raise ValueError(f"`embed_dim` must be even for sinusoids of distances, but is {embed_dim}.")
        self.embed_dim = embed_dim
        self.content_bias = nn.Parameter(torch.zeros(num_heads, embed_dim // num_heads))
        self.position_bias = nn.Parameter(torch.zeros(num_heads, embed_dim // num_heads))
        # No buffer: each process grows it to its own longest text.
        self._table = torch.empty(0, embed_dim)

    def between(self, first: int, last: int, like: Tensor) -> Tensor:
        """Return the sinusoids of the distances ``first`` down to ``last``, of the type of ``like``: (N, D)."""
        longest = max(first, -last)
        if 2 * longest >= len(self._table) or self._table.device != like.device:
            longest = max(longest, len(self._table), 512)
            numbers = torch.arange(longest, -longest - 1, -1, dtype=torch.float, device="cpu")
            # What is made in inference mode could never be trained with.
            with torch.inference_mode(False):
                self._table = sinusoids(numbers, self.embed_dim, self.embed_dim // 2).to(like.device)
        middle = len(self._table) // 2
        return self._table[middle - first : middle - last + 1].to(like.dtype)


@ATTENTION.register("relative")
class RelativeAttention(CoreAttention):
    """Scores of contents and of distances (Dai et al. 2019, section 3.3), without a memory of earlier segments.

    score(i, j) = ((q_i + u) k_j + (q_i + w) R(i - j)) / sqrt(E), where R is a linear layer that reads the sinusoid of
    the distance, and u and w belong to all layers of the model. Unless it is causal, distances to later positions are
    negative (Yang et al. 2019, section 2.3).

    Args:
        distances: what the layers of a model share; without, this one has its own.
        position_dropout: that of dropping a value of a sinusoid.
    """

    supports = frozenset({Feature.ITSELF, Feature.CAUSAL, Feature.STEPS, Feature.DISTANCES})
    is_exact = False
    _QUERIES = 64  # of a cached step, whose weights are held at a time
    #: how many positions a query sees on either side, 0 for all; how far apart they are; and for how many heads
    side, dilation, dilated_heads = 0, 1, 0

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        distances: Distances | None = None,
        dropout: Probability = 0.0,
        position_dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.distances = distances or Distances(embed_dim, num_heads)
        self.dropout = dropout
        self.position_dropout = position_dropout
        self.position_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        parts = []
        for heads, stride in self._groups:
            rows, keys, values = (interleaved(x[:, heads], stride) for x in (q, k, v))
            hidden = context.padding_mask
            if hidden is not None or stride > 1:
                hidden = interleaved_mask(padding_of(k, hidden), stride)
            last = rows.size(2) - 1
            plan: Plan = Dense(last + 1, None if hidden is None else ~hidden[:, None, None], context.is_causal)
            reach = last
            if self.side and self.side < last:
                reach = self.side
                plan = Band(padding_of(keys, hidden), reach, ahead=not context.is_causal)
            projected = self._projected(reach, 0 if context.is_causal else -reach, heads, stride)
            scores = Relative(projected, self.distances.content_bias[heads], self.distances.position_bias[heads], reach)
            parts.append(in_order(tiled_attention(rows, keys, values, plan, scores, self.dropped), stride, q.size(2)))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def new_state(self) -> State:
        return ProjectedDistances()

    def step(self, q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None, state: State) -> Tensor:
        assert isinstance(state, ProjectedDistances)
        k, v = state.extend(k, v)
        # From 0 on: (H, N, E) -> (1, H, N, E)
        new = self._projected(k.size(2) - 1, state.distances, slice(None))
        by_distance = state.extend_distances(new.flip(1)[None])
        parts = []
        for start in range(0, q.size(2), self._QUERIES):
            rows = slice(start, start + self._QUERIES)
            hidden = None if blocked is None else blocked[:, :, rows]
            parts.append(self._read(q[:, :, rows], k, v, by_distance, hidden))
        return torch.cat(parts, dim=2)

    def _unseen(self, away: Tensor, blocked: Tensor | None, q: Tensor) -> Tensor | None:
        """Return what is added to the scores of a step: (B, H or 1, T, S), or None."""
        if not self.side:
            return blocked
        far = [
            (~in_window(away, self.side, stride)).expand(-1, heads.stop - heads.start, -1, -1)
            for heads, stride in self._groups
        ]
        unseen = hiding(torch.cat(far, dim=1), q)
        return unseen if blocked is None else unseen + blocked

    def _read(self, q: Tensor, k: Tensor, v: Tensor, by_distance: Tensor, blocked: Tensor | None) -> Tensor:
        """Attend from a few new positions to all written ones."""
        root, away = q.size(-1) ** -0.5, distances_back(blocked, k)
        unseen = self._unseen(away, blocked, q)
        content, position = (
            (q + bias[:, None].to(q.dtype)) * root
            for bias in (self.distances.content_bias, self.distances.position_bias)
        )
        # (B, H, WT, E) @ (1, H, E, S) -> (B, H, WT, S)
        further = (position @ by_distance.mT).gather(3, away.expand(*q.shape[:3], -1))
        scores = full_precision(content @ k.mT) + further
        scores = scores if unseen is None else scores + unseen
        return drop(scores.softmax(dim=-1), self.dropped).to(v.dtype) @ v

    def _projected(self, first: int, last: int, heads: slice, stride: int = 1) -> Tensor:
        """Return what queries of ``heads`` meet of ``first`` strides down to ``last``: (H, N, E)."""
        read = self.distances.between(first * stride, last * stride, self.position_proj.weight)[::stride]
        read = drop(read, self.position_dropout) if self.training else read
        # (N, D) -> (N, H, E) -> (H, N, E)
        projected: Tensor = self.position_proj(read)
        return projected.unflatten(1, (self.num_heads, -1))[:, heads].transpose(0, 1)

    @property
    def _groups(self) -> list[tuple[slice, int]]:
        return head_groups(self.num_heads, self.dilated_heads, self.dilation)


@ATTENTION.register("relative_window")
class RelativeWindowAttention(RelativeAttention):
    """`relative` within a window, as in Longformer's models of characters (Beltagy et al. 2020, section 4.1).

    Time and memory are linear in the length. Where it is causal, positions see themselves and the half of their window
    that stands before them. Steps keep all keys.

    Args:
        window: positions on both sides together, half of them on each.
        dilation: dilated heads see as many positions, so far apart from each other.
        dilated_heads: how many of the last heads are dilated.
    """

    wide: ClassVar = {"window": 64}
    narrow: ClassVar = {"window": 4, "dilation": 2, "dilated_heads": 1}

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        distances: Distances | None = None,
        window: Window = 512,
        dilation: Count = 1,
        dilated_heads: CountOrZero = 0,
        dropout: Probability = 0.0,
        position_dropout: Probability = 0.0,
    ) -> None:
        super().__init__(embed_dim, num_heads, distances, dropout, position_dropout)
        check_dilation(dilation, dilated_heads)
        self.side = window // 2
        self.dilation = dilation
        self.dilated_heads = dilated_heads

"""Full attention with a learned bias for each bucket of distances, as in T5."""

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Range
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.state import ProjectedDistances
from pyramidions.nn.functional.attention import scaled_dot_product_attention, tiled_attention
from pyramidions.nn.functional.masking import distances_back
from pyramidions.nn.functional.tiles import ByDistance, Dense
from pyramidions.nn.options import Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, State

#: how many buckets there are, and the distance beyond which all share one
Buckets = Annotated[int, Range(4, 2**20)]
Furthest = Annotated[int, Range(2, 2**24)]


class DistanceBiases(nn.Module):
    """A bias for each head and each bucket of distances (Raffel et al. 2020, section 2.1).

    The layers of an encoder share one, and those of a decoder another.

    Args:
        buckets: half of them are for later positions, unless these are hidden. Half of those on a side hold a single
            distance each, and the others grow logarithmically.
    """

    def __init__(self, num_heads: int, buckets: int, furthest: int) -> None:
        super().__init__()
        self.furthest = furthest
        self.table = nn.Embedding(buckets, num_heads)
        nn.init.zeros_(self.table.weight)

    def forward(self, distances: Tensor, is_causal: bool) -> Tensor:
        """Return the biases of distances (N,) from queries to keys: (H, N)."""
        return self.table(self._buckets(distances, is_causal)).T

    def _buckets(self, distances: Tensor, is_causal: bool) -> Tensor:
        of_side = self.table.num_embeddings
        first = torch.zeros_like(distances)
        if not is_causal:
            of_side //= 2
            first = (distances > 0) * of_side
        away = distances.abs() if not is_causal else distances.neg().clamp(min=0)
        single = of_side // 2
        share = (away.clamp(min=single).float() / single).log() / math.log(self.furthest / single)
        shared = single + (share * (of_side - single)).long()
        return first + torch.where(away < single, away, shared.clamp(max=of_side - 1))


def check_furthest(buckets: int, furthest: int) -> None:
    """Raise ValueError if the furthest distance has a bucket of its own."""
    if furthest <= buckets // 2:
        raise ValueError(f"`furthest` must be above half of the `buckets` ({buckets // 2}), but is {furthest}.")


@ATTENTION.register("bucketed")
class BucketedAttention(CoreAttention):
    """Full attention whose scores have a learned bias for each bucket of distances (Raffel et al. 2020, section 2.1).

    Args:
        buckets: of distances, in both directions together; see `DistanceBiases`.
        furthest: longer distances have the bucket of this one; above half of the buckets.
    """

    supports = frozenset({Feature.ITSELF, Feature.CAUSAL, Feature.STEPS})
    is_exact = False
    shared = ("biases",)

    def __init__(
        self,
        num_heads: int,
        buckets: Buckets = 32,
        furthest: Furthest = 128,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        check_furthest(buckets, furthest)
        self.biases = DistanceBiases(num_heads, buckets, furthest)
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        length, hidden = q.size(2), context.padding_mask
        distances = torch.arange(1 - length, length, device=q.device)
        biases = ByDistance(self.biases(distances, context.is_causal))
        plan = Dense(length, None if hidden is None else ~hidden[:, None, None], context.is_causal)
        return tiled_attention(q, k, v, plan, biases, self.dropped)

    def new_state(self) -> State:
        return ProjectedDistances()

    def step(self, q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None, state: State) -> Tensor:
        assert isinstance(state, ProjectedDistances)
        k, v = state.extend(k, v)
        # Of 0, 1, ... positions back; only the new ones are looked up: (H, N) -> (1, H, N, 1), all of them (H, S)
        new = self.biases(-torch.arange(state.distances, k.size(2), device=q.device), True).to(q.dtype)
        back = state.extend_distances(new[None, ..., None])[0, ..., 0]
        # (H, B, T, S) -> (B, H, T, S)
        bias = back[:, distances_back(blocked, k)[:, 0]].transpose(0, 1)
        bias = bias if blocked is None else bias + blocked
        return scaled_dot_product_attention(q, k, v, bias, self.dropped)

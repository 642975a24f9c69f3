"""The sparse feed-forward part."""

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import Count, Range, Share
from pyramidions.nn.feed_forward.chosen_units import ChosenUnits
from pyramidions.nn.feed_forward.core import FEED_FORWARD, FeedForward
from pyramidions.nn.options import Divisor, Probability
from pyramidions.nn.sublayer import LayerContext


@FEED_FORWARD.register("sparse")
class SparseFeedForward(FeedForward):
    """One hidden unit of each block, chosen by a controller of low rank (Jaszczur et al. 2021, section 3.1).

    In evaluation a position reads 2 * F / N rows of the weights, and of the controller everything. `ChosenUnits` has
    what happens in training; where the paper and its public implementation differ, this is the implementation: the mask
    stands before ReLU, the temperature is that of the noise, and there is no bias before ReLU.

    Args:
        embed_dim: D.
        ffn_embed_dim: F, hidden units.
        block_size: N, consecutive hidden units of which one is chosen.
        rank: of the controller; None for F / N.
        temperature: factor of the Gumbel noise by which training chooses.
        quantized: share of calls in training that choose; the others weight all units of a block.
        activation_dropout: probability of dropping a value after ReLU while training.

    Raises:
        ValueError: a block size that does not divide F.
    """

    narrow: ClassVar = {"block_size": 4}

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        block_size: Divisor = 64,
        rank: Count | None = None,
        temperature: Annotated[float, Range(0)] = 0.1,
        quantized: Share = 0.3,
        activation_dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        if ffn_embed_dim % block_size:
            raise ValueError(f"`ffn_embed_dim` ({ffn_embed_dim}) must be divisible by `block_size` ({block_size}).")
        rank = ffn_embed_dim // block_size if rank is None else rank
        self.chosen = ChosenUnits(
            LowRankController(embed_dim, ffn_embed_dim, rank),
            embed_dim,
            ffn_embed_dim,
            block_size,
            temperature=temperature,
            quantized=quantized,
            dropout=activation_dropout,
        )

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return self.chosen(x.flatten(0, 1)).view(x.shape)


class LowRankController(nn.Module):
    """A linear layer whose weights are a product of two matrices.

    Args:
        embed_dim: D.
        ffn_embed_dim: F.
        rank: inner dimension of the product.
    """

    def __init__(self, embed_dim: int, ffn_embed_dim: int, rank: int) -> None:
        super().__init__()
        # The longer dimension lies together in both, for products with one vector.
        self.down = nn.Parameter(torch.empty(rank, embed_dim))
        self.up = nn.Parameter(torch.empty(rank, ffn_embed_dim))
        self.bias = nn.Parameter(torch.zeros(ffn_embed_dim))
        nn.init.xavier_uniform_(self.down)
        nn.init.xavier_uniform_(self.up)

    def forward(self, x: Tensor) -> Tensor:
        """(T, D) -> (T, F)."""
        return torch.addmm(self.bias, F.linear(x, self.down), self.up)

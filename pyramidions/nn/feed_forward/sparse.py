"""Feed-forward parts where a controller chooses a few hidden units for each position.

In place of the legend of `pyramidions.nn`: T positions; B blocks of N choices with M units each; F hidden units, of
which K are chosen.
"""

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import Count, Range, Share
from pyramidions.base.device import has_values
from pyramidions.nn.feed_forward.dense import FEED_FORWARD, FeedForward
from pyramidions.nn.functional.choices import choose, gated_relu
from pyramidions.nn.functional.products import row_products
from pyramidions.nn.options import Divisor, Probability
from pyramidions.nn.sublayer import LayerContext


class ChosenUnits(nn.Module):
    """Two layers with ReLU between them; each position uses a few chosen hidden units.

    Hidden units are blocks of N choices, each of them M consecutive units. The controller gives every choice a logit.

    - In training the units are multiplied by the softmax of their block's logits, before ReLU. With probability
      ``quantized``, drawn once a call, the choice with the greatest logit plus noise is taken instead, with the
      gradient of the softmax.
    - In evaluation the choice with the greatest logit is taken, and of both matrices only its rows are read. A position
      costs the controller and 2 * ``ffn_embed_dim`` / N * D multiplications. Its controller has no gradient.

    There is no bias before ReLU.

    Args:
        controller: (T, D) -> (T, ``ffn_embed_dim`` / M); computes in full precision under autocast.
    """

    def __init__(
        self,
        controller: nn.Module,
        embed_dim: int,
        ffn_embed_dim: int,
        choices: int,
        units: int = 1,
        temperature: float = 0.0,
        quantized: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.controller = controller
        self.choices, self.units = choices, units
        self.temperature, self.quantized = temperature, quantized
        self.dropout = dropout
        # Both have a row for each hidden unit, so that what is chosen lies together.
        self.into = nn.Parameter(torch.empty(ffn_embed_dim, embed_dim))
        self.out_of = nn.Parameter(torch.empty(ffn_embed_dim, embed_dim))
        self.bias = nn.Parameter(torch.zeros(embed_dim))
        nn.init.xavier_uniform_(self.into)
        nn.init.xavier_uniform_(self.out_of)

    def forward(self, x: Tensor) -> Tensor:
        """(T, D) -> (T, D)."""
        # (T, B * N) -> (T, B, N)
        logits = self._logits(x).view(x.size(0), -1, self.choices)
        return self._masked(x, logits) if self.training else self._gathered(x, logits)

    def _logits(self, x: Tensor) -> Tensor:
        if not torch.is_autocast_enabled(x.device.type):
            return self.controller(x)
        with torch.autocast(x.device.type, enabled=False):
            return self.controller(x.float())

    def _masked(self, x: Tensor, logits: Tensor) -> Tensor:
        """Compute all units, and mask them: (T, D), (T, B, N) -> (T, D)."""
        chosen = choose(logits, self.temperature) if self._quantizes(x) else None
        # (T, D) -> (T, B, N, M)
        hidden = F.linear(x, self.into).view(*logits.shape, self.units)
        hidden = gated_relu(hidden, logits, chosen, self.dropout)
        return torch.addmm(self.bias, hidden.view(x.size(0), -1), self.out_of)

    def _quantizes(self, x: Tensor) -> bool:
        # Drawn on the host and compared by numpy: nothing waits for a GPU, nor seems to. Both kinds of call have
        # the same products and keep the same.
        return has_values(x) and bool(torch.rand((), device="cpu").numpy() < self.quantized)

    def _gathered(self, x: Tensor, logits: Tensor) -> Tensor:
        """Compute the chosen units alone: (T, D), (T, B, N) -> (T, D)."""
        # Where the choices of each block begin: (B,). No buffer, since a model that is read from a file has none.
        first = torch.arange(0, logits.shape[1:].numel(), self.choices, device=x.device)
        # (T, B), which of all choices
        rows = choose(logits) + first
        if self.units > 1:
            # (T, B) -> (T, B * M), which of all units
            units = torch.arange(self.units, device=x.device)
            rows = (rows[..., None] * self.units + units).flatten(1)
        hidden = row_products(x, self.into, rows).relu()
        # Sums of weighted rows, which are not copied: (T, K) -> (T, D)
        mixed = F.embedding_bag(rows, self.out_of, mode="sum", per_sample_weights=hidden.to(self.out_of.dtype))
        return (mixed + self.bias).to(hidden.dtype)


@FEED_FORWARD.register("sparse")
class SparseFeedForward(FeedForward):
    """One hidden unit of each block, chosen by a controller of low rank (Jaszczur et al. 2021, section 3.1).

    In evaluation a position reads 2 * F / N rows of the weights, and of the controller everything. `ChosenUnits` has
    what happens in training; where the paper and its public implementation differ, this is the implementation: the mask
    stands before ReLU, the temperature is that of the noise, and there is no bias before ReLU.

    Args:
        block_size: N, consecutive hidden units; one of them is chosen.
        rank: of the controller; None for F / N.
        temperature: factor of the Gumbel noise that training adds before it chooses.
        quantized: share of calls in training that choose; the others weight all units of a block.
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
    """A linear layer whose weights are a product of two matrices, of inner dimension ``rank``."""

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


@FEED_FORWARD.register("experts")
class ExpertsFeedForward(FeedForward):
    """Consecutive hidden units, all of one expert, chosen by a linear layer (Jaszczur et al. 2021, section 3.1).

    The paper compares its sparse part with experts but does not describe them. They are read as the sparse part with a
    single block, whose choices are the experts: the mask of an expert, one number, multiplies all its units; the
    temperature is that of the noise; the softmax is over all experts. The controller has full rank, for it is small.
    There is no loss that balances experts, and none of them is ever full. A position reads as many rows of the weights
    as in the sparse part with blocks of as many units as there are experts.

    Args:
        experts: how many there are.
        temperature: factor of the Gumbel noise that training adds before it chooses.
        quantized: share of calls in training that choose; the others weight all experts.
    """

    narrow: ClassVar = {"experts": 4}

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        experts: Divisor = 64,
        temperature: Annotated[float, Range(0)] = 0.7,
        quantized: Share = 0.5,
        activation_dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        if ffn_embed_dim % experts:
            raise ValueError(f"`ffn_embed_dim` ({ffn_embed_dim}) must be divisible by `experts` ({experts}).")
        controller = nn.Linear(embed_dim, experts)
        nn.init.xavier_uniform_(controller.weight)
        nn.init.zeros_(controller.bias)
        self.chosen = ChosenUnits(
            controller,
            embed_dim,
            ffn_embed_dim,
            experts,
            ffn_embed_dim // experts,
            temperature=temperature,
            quantized=quantized,
            dropout=activation_dropout,
        )

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return self.chosen(x.flatten(0, 1)).view(x.shape)

"""Hidden units of which each position uses a few, chosen by a controller."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.device import has_values
from pyramidions.nn.functional.choices import choose, gated_relu
from pyramidions.nn.functional.row_products import row_products


class ChosenUnits(nn.Module):
    """Two layers with ReLU between them, of whose hidden units a few are chosen for each position.

    Hidden units are blocks of N choices, each of them M consecutive units. The controller gives every choice a logit.

    - In training the units are multiplied by the softmax of their block's logits, before ReLU. With probability
      ``quantized``, drawn once a call, the choice with the greatest logit plus noise is taken instead, with the
      gradient of the softmax.
    - In evaluation the choice with the greatest logit is taken, and of both matrices only its rows are read. A position
      costs the controller and 2 * ``ffn_embed_dim`` / N * D multiplications. Its controller has no gradient.

    There is no bias before ReLU.

    Args:
        controller: (T, D) -> (T, ``ffn_embed_dim`` / M); computes in full precision under autocast.
        embed_dim: D.
        ffn_embed_dim: hidden units of all blocks.
        choices: N.
        units: M.
        temperature: factor of the Gumbel noise, which only calls with a choice draw.
        quantized: share of calls in training with a choice.
        dropout: probability of dropping a hidden unit after ReLU while training.
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

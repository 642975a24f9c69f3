"""Pooling at markers: the first vector of each unit of the text."""

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Count, CountOrZero
from pyramidions.nn.pooling.pooler import POOLING, Pooled, Pooler, selected
from pyramidions.nn.positions import SinusoidalPositions
from pyramidions.nn.sequence import PoolingContext, Sequence


@POOLING.register("markers")
class MarkersPooler(Pooler):
    """Hands on the first vector of each sentence, turn or section (Liu and Lapata 2019, section 3.1).

    A unit starts with its document and at each marker, so that its first vector is the one there. After another pooling
    a vector belongs to the unit of its strongest member, and the first vector of a unit is the first handed on.

    The text decides how many vectors there are, so that the host waits for a GPU once.

    With ``role_tokens`` each vector is joined with who speaks (Zhu et al. 2020, section 3.2): the mean embedding of the
    first tokens of the name that its unit begins with, such as `Project Manager:`. Training begins as without.

    Args:
        role_tokens: tokens of a unit that say who speaks; 0 for no roles.
        numbers: add a sinusoidal embedding of each unit's place among those handed on. Positions of layers that stay
            inside units then count from the start of the unit, so that its vectors depend on no other.
    """

    reads_units = True

    def __init__(self, k: Count, embed_dim: int = 0, role_tokens: CountOrZero = 0, numbers: bool = False) -> None:
        super().__init__()
        self.k = k
        self.role_tokens = role_tokens
        self.reads_roles = role_tokens > 0
        # (B, K, 2 * D), a vector and its role -> (B, K, D)
        self.joined = _first_half(embed_dim) if self.reads_roles else None
        self.numbers_units = numbers
        self.numbers = SinusoidalPositions(embed_dim) if numbers else None

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        first, sources = selected(sequence.x, sequence.leads_unit, self.k)
        x = self._told(first.x, sequence, sources, first.padding_mask)
        return first._replace(x=x.masked_fill(first.padding_mask[..., None], 0.0))

    def _told(self, x: Tensor, sequence: Sequence, sources: Tensor, padding_mask: Tensor) -> Tensor:
        """Add to vectors (B, K, D) of ``sources`` (B, K) who speaks, and in which unit."""
        if self.joined is not None:
            if sequence.roles is None or sequence.unit is None:
                raise ValueError("The sequence must say who speaks in each unit of the text, but does not.")
            unit = sequence.unit.gather(1, sources).masked_fill(padding_mask, -1)
            roles = sequence.roles(unit, self.role_tokens).to(x.dtype)
            x = self.joined(torch.cat([x, roles], dim=-1)).to(x.dtype)
        if self.numbers is not None:
            x = x + self.numbers(torch.arange(x.size(1), device=x.device), x.size(1)).to(x.dtype)
        return x


def _first_half(dim: int) -> nn.Linear:
    """Return a map of the first half of 2 * ``dim`` values to themselves, for training to go on from."""
    joined = nn.Linear(2 * dim, dim)
    with torch.no_grad():
        joined.weight.copy_(torch.eye(dim, 2 * dim))
        joined.bias.zero_()
    return joined

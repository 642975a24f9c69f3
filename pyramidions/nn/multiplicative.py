"""The multiplicative layer: a dense layer's shape with the weights of few modules.

Beside the legend of `pyramidions.nn`: a vector of V numbers is made, S modules of M numbers each.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.functional.products import long_products


class Multiplicative(nn.Module):
    """y[s, m] = sum over i of x_i A[i, s] E[i, m], plus a bias (Jaszczur et al. 2021, section 3.2).

    It has D S + D V / S weights, where a dense layer has D V, and can still put the numbers of a vector into any order.

    Of few rows it makes S copies each, x_i A[i, s], and multiplies them with E. For many rows it makes the matrix of a
    dense layer, A[i, s] E[i, m]. Both compute the same.
    """

    def __init__(self, in_dim: int, modules: int, out_dim: int, bias: bool = True) -> None:
        super().__init__()
        check_modules("out_dim", out_dim, modules)
        #: A transposed, (S, D): how much of each number a module reads
        self.across = nn.Parameter(torch.empty(modules, in_dim))
        # Products with few vectors are fastest where the shorter rows lie together.
        self._is_long = out_dim // modules > in_dim
        shape = (in_dim, out_dim // modules)
        #: E, (D, M), or transposed where M is the greater: where in a module each number goes
        self.within = nn.Parameter(torch.empty(shape[::-1] if self._is_long else shape))
        self.bias = nn.Parameter(torch.zeros(out_dim)) if bias else None
        nn.init.normal_(self.across, std=0.5)
        nn.init.xavier_uniform_(self.within)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V), module after module."""
        # S copies of all rows are then no more numbers than the matrix.
        few = x.shape[:-1].numel() <= self.within.size(0 if self._is_long else 1)
        return self.factored(x) if few else self.formed(x)

    def factored(self, x: Tensor) -> Tensor:
        """Compute `forward` without the matrix."""
        # (..., D) -> (..., S, D) -> (..., S, M) -> (..., V)
        copies = self.across * x.unsqueeze(-2)
        y = (long_products(copies, self.within) if self._is_long else copies @ self.within).flatten(-2)
        return y if self.bias is None else y + self.bias

    def formed(self, x: Tensor) -> Tensor:
        """Compute `forward` by the matrix."""
        if self._is_long:
            # (S, 1, D), (M, D) -> (S, M, D) -> (V, D)
            return F.linear(x, (self.across[:, None] * self.within).flatten(0, 1), self.bias)
        # (D, S, 1), (D, 1, M) -> (D, S, M) -> (D, V)
        matrix = (self.across.mT[..., None] * self.within[:, None]).flatten(1)
        return F.linear(x, matrix.mT, self.bias)


def check_modules(name: str, width: int, modules: int) -> int:
    """Return how many of ``width`` numbers each of ``modules`` S has; raise ValueError if they do not divide it."""
    if modules < 1:
        raise ValueError(f"`modules` must be at least 1, but is {modules}.")
    if width % modules:
        raise ValueError(f"`{name}` ({width}) must be divisible by `modules` ({modules}).")
    return width // modules

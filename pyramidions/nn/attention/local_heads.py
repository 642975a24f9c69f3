"""Heads that attend within a window, beside those of a kind that reaches further."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pyramidions.nn.functional.attention import tiled_attention
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.functional.tiles import Band


class LocalHeads(nn.Module):
    """Takes the first heads of an attention kind and lets them attend within a window (Rae and Razavi 2020).

    Without such heads, attention that only reaches far summarizes badly (Pietruszka et al. 2022, appendix C.1). There
    are ``count`` of them, as far as there are heads. Half of the ``window`` is on each side. Unless they
    ``see_themselves``, a position sees itself only where it sees nothing else.
    """

    def __init__(self, count: int, window: int, dropout: float = 0.0, *, see_themselves: bool = True) -> None:
        super().__init__()
        self.count = count
        self.side = window // 2
        self.dropout = dropout
        self.see_themselves = see_themselves

    def beside(
        self,
        others: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        padding_mask: Tensor | None,
    ) -> Tensor:
        """Attend locally with the first heads of (B, H, L, E), and with the remaining ones as ``others`` does.

        It maps these, and the padding mask (B, L), to their output.
        """
        padding_mask = padding_of(k, padding_mask)
        count = min(self.count, q.size(1))
        parts = []
        if count:
            near = q[:, :count], k[:, :count], v[:, :count]
            dropout = self.dropout if self.training else 0.0
            parts.append(tiled_attention(*near, Band(padding_mask, self.side, self.see_themselves), dropout=dropout))
        if count < q.size(1):
            parts.append(others(q[:, count:], k[:, count:], v[:, count:], padding_mask))
        return torch.cat(parts, dim=1)

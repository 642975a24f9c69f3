"""Soft selection that may turn hard at inference."""

from collections.abc import Callable

from torch import Tensor, nn

from pyramidions.nn.functional.topk import TopK, hard_topk
from pyramidions.nn.pooling.core import Pooled, pooled_from


class Selection(nn.Module):
    """Selects k vectors by a soft operator or, where asked for, by the hard one when not training.

    Args:
        k: vectors to select.
        inference: "soft", or "hard" to hand on the best as they are when not training.

    Raises:
        ValueError: another word for ``inference``.
    """

    def __init__(self, k: int, inference: str) -> None:
        super().__init__()
        if inference not in ("soft", "hard"):
            raise ValueError(f"`inference` must be soft or hard, but is {inference!r}.")
        self.k = k
        self.inference = inference

    def forward(self, soft: Callable[..., TopK], x: Tensor, scores: Tensor, padding_mask: Tensor) -> Pooled:
        """Select from ``x`` (B, L, D) by ``scores`` (B, L) outside ``padding_mask`` (B, L)."""
        operator = hard_topk if self.inference == "hard" and not self.training else soft
        return pooled_from(operator(x, scores, self.k, padding_mask=padding_mask), scores)

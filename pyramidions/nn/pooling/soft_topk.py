"""Soft top-k pooling: a scorer rates the representations, a tournament condenses them."""

from functools import partial

from torch import Tensor

from pyramidions.nn.context import Context
from pyramidions.nn.functional.topk import successive_halving_topk
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.pooling.selection import Selection
from pyramidions.nn.scorer import Scorer


@POOLING.register("soft_topk")
class SoftTopKPooler(Pooler):
    """Trainable pooling by Successive Halving (Pietruszka et al. 2022, sections 3.1 and 4).

    Args:
        k: representations to hand on.
        scorer: rates them.
        base: of the peaked softmax; None is the plain one.
        sort: sort the candidates of each round.
        inference: "soft", or "hard" to hand on the best as they are when not training.
    """

    def __init__(
        self, k: int, scorer: Scorer, base: float | None = 20.0, sort: bool = True, inference: str = "soft"
    ) -> None:
        super().__init__()
        if base is not None and base <= 1:
            raise ValueError(f"`base` must be above 1, or null for the plain softmax, but is {base}.")
        self.scorer = scorer
        self.base = base
        self.sort = sort
        self.select = Selection(k, inference)

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Pooled:
        halving = partial(successive_halving_topk, base=self.base, sort=self.sort)
        return self.select(halving, x, self.scorer(x, padding_mask, context), padding_mask)

    def kept(self, length: int) -> int:
        return min(length, self.select.k)

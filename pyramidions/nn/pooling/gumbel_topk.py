"""Gumbel top-k pooling."""

from functools import partial

from torch import Tensor

from pyramidions.nn.context import Context
from pyramidions.nn.functional.topk import gumbel_topk
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.pooling.selection import Selection
from pyramidions.nn.scorer import Scorer


@POOLING.register("gumbel_topk")
class GumbelTopKPooler(Pooler):
    """Trainable pooling by sampling a relaxed subset (Xie and Ermon 2019); no noise when not training.

    Args:
        k: representations to hand on.
        scorer: rates them.
        temperature: towards 0 the selection becomes hard.
        inference: "soft", or "hard" to hand on the best as they are when not training.
    """

    def __init__(self, k: int, scorer: Scorer, temperature: float = 1.0, inference: str = "soft") -> None:
        super().__init__()
        if temperature <= 0:
            raise ValueError(f"`temperature` must be positive, but is {temperature}.")
        self.scorer = scorer
        self.temperature = temperature
        self.select = Selection(k, inference)

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Pooled:
        gumbel = partial(gumbel_topk, temperature=self.temperature, noise=self.training)
        return self.select(gumbel, x, self.scorer(x, padding_mask, context), padding_mask)

    def kept(self, length: int) -> int:
        return min(length, self.select.k)

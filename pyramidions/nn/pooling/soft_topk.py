"""Soft top-k pooling: a scorer rates the representations, a tournament condenses them."""

from torch import Tensor

from pyramidions.nn.functional.topk import successive_halving_topk
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.scorer import Scorer


@POOLING.register("soft_topk")
class SoftTopKPooler(Pooler):
    """Trainable pooling by Successive Halving (Pietruszka et al. 2022, sections 3.1 and 4).

    Args:
        k: representations to hand on.
        scorer: rates them.
        base: of the peaked softmax; None is the plain one.
    """

    def __init__(self, k: int, scorer: Scorer, base: float | None = 20.0) -> None:
        super().__init__()
        if base is not None and base <= 1:
            raise ValueError(f"`base` must be above 1, or null for the plain softmax, but is {base}.")
        self.k = k
        self.scorer = scorer
        self.base = base

    def forward(self, x: Tensor, padding_mask: Tensor) -> Pooled:
        scores = self.scorer(x, padding_mask)
        top = successive_halving_topk(x, scores, self.k, padding_mask=padding_mask, base=self.base)
        # The scorer stays in the graph of a batch too short to be pooled: data-parallel training waits for the
        # gradient of every parameter. Scores are finite, so this adds exactly nothing.
        return Pooled(top.x + 0.0 * scores.sum().to(x.dtype), top.padding_mask, top.sources, top.weights)

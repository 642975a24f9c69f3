"""Hard top-k pooling: the representations with the highest scores, as they are."""

from torch import Tensor

from pyramidions.nn.context import Context
from pyramidions.nn.functional.topk import hard_topk
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler, pooled_from
from pyramidions.nn.scorer import Scorer


@POOLING.register("hard_topk")
class HardTopKPooler(Pooler):
    """Hard selection (Goyal et al. 2020, section 3): no gradient reaches the scorer.

    Args:
        k: representations to hand on.
        scorer: rates them.
    """

    def __init__(self, k: int, scorer: Scorer) -> None:
        super().__init__()
        self.k = k
        self.scorer = scorer

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Pooled:
        scores = self.scorer(x, padding_mask, context)
        return pooled_from(hard_topk(x, scores, self.k, padding_mask=padding_mask), scores)

    def kept(self, length: int) -> int:
        return min(length, self.k)

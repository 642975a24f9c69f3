"""Iterative top-k pooling."""

from torch import Tensor

from pyramidions.nn.context import Context
from pyramidions.nn.functional.topk import hard_topk, iterative_topk
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler, check_inference, pooled_from
from pyramidions.nn.scorer import Scorer


@POOLING.register("iterative_topk")
class IterativeTopKPooler(Pooler):
    """Trainable pooling by k softmaxes with masking (Goyal et al. 2018).

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
        check_inference(inference)
        self.k = k
        self.scorer = scorer
        self.temperature = temperature
        self.inference = inference

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Pooled:
        scores = self.scorer(x, padding_mask, context)
        if self.inference == "hard" and not self.training:
            return pooled_from(hard_topk(x, scores, self.k, padding_mask=padding_mask), scores, padding_mask)
        top = iterative_topk(x, scores, self.k, padding_mask=padding_mask, temperature=self.temperature)
        return pooled_from(top, scores, padding_mask)

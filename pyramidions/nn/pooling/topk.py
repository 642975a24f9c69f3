"""Top-k pooling: a scorer rates the representations, an operator selects or condenses them."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from pyramidions.base.arguments import Range
from pyramidions.nn.functional.topk import TopK, gumbel_topk, hard_topk, iterative_topk, successive_halving_topk
from pyramidions.nn.options import Positive
from pyramidions.nn.pooling.pooler import POOLING, Pooled, Pooler
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence

Inference = Literal["soft", "hard"]


class TopKPooler(Pooler):
    """Hands on k vectors, selected or mixed: while training by one operator of `functional.topk`, else by another."""

    takes_scorer = True

    def __init__(self, k: int, scorer: Scorer, train: Callable[..., TopK], evaluate: Callable[..., TopK]) -> None:
        super().__init__()
        self.k = k
        #: how many times ``k`` are handed on while training
        self.widening = 1
        self.scorer = scorer
        self.train_operator = train
        self.evaluation_operator = evaluate

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        scores = self.scorer(sequence, context)
        operator = self.train_operator if self.training else self.evaluation_operator
        top = operator(sequence.x, scores, self._most, padding_mask=sequence.padding_mask)
        # Vectors that pass through unchanged are copied: every selection is a tensor of its own.
        x = top.x.clone() if top.x.size(1) == scores.size(1) else top.x
        # The scorer stays in the graph even if the selection does not depend on the scores (batches too short to be
        # pooled, hard selection): data-parallel training waits for the gradient of every parameter.
        spread = self._spread(scores.detach(), sequence.padding_mask)
        return Pooled(Attached.apply(x, scores), top.padding_mask, top.sources, top.weights, spread=spread)

    def kept(self, length: int) -> int:
        return min(length, self._most)

    def _spread(self, scores: Tensor, padding_mask: Tensor) -> Tensor | None:
        if not any(weight.requires_grad for weight in self.scorer.parameters()):
            return None
        highest = scores.masked_fill(padding_mask, -torch.inf).amax(1)
        lowest = scores.masked_fill(padding_mask, torch.inf).amin(1)
        return torch.where((~padding_mask).sum(1) > self._most, highest - lowest, torch.nan)

    @property
    def _most(self) -> int:
        return self.k * self.widening if self.training else self.k


class Attached(torch.autograd.Function):
    """Hands on ``x`` unchanged, and gives ``scores`` a gradient of zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scores: Tensor) -> Tensor:
        ctx.scores = scores.shape, {"dtype": scores.dtype, "device": scores.device}
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        shape, kind = ctx.scores
        return grad, torch.zeros(shape, **kind)


@POOLING.register("soft_topk")
class SoftTopKPooler(TopKPooler):
    """Pools by Successive Halving (Pietruszka et al. 2022, sections 3.1 and 4).

    Args:
        base: of the peaked softmax; None is the plain one.
        sort: sort the candidates of each round.
        inference: "soft", or "hard" to hand on the best as they are when not training.
    """

    def __init__(
        self,
        k: int,
        scorer: Scorer,
        base: Annotated[float, Range(1, open=True)] | None = 20.0,
        sort: bool = True,
        inference: Inference = "soft",
    ) -> None:
        halving = partial(successive_halving_topk, base=base, sort=sort)
        super().__init__(k, scorer, halving, hard_topk if inference == "hard" else halving)


@POOLING.register("hard_topk")
class HardTopKPooler(TopKPooler):
    """Selects the best as they are (Goyal et al. 2020, section 3): no gradient reaches the scorer."""

    def __init__(self, k: int, scorer: Scorer) -> None:
        super().__init__(k, scorer, hard_topk, hard_topk)


@POOLING.register("iterative_topk")
class IterativeTopKPooler(TopKPooler):
    """Pools by k softmaxes with masking (Goyal et al. 2018).

    Args:
        temperature: towards 0 the selection becomes hard.
        inference: "soft", or "hard" to hand on the best as they are when not training.
    """

    keeps_queries = False

    def __init__(self, k: int, scorer: Scorer, temperature: Positive = 1.0, inference: Inference = "soft") -> None:
        iterative = partial(iterative_topk, temperature=temperature)
        super().__init__(k, scorer, iterative, hard_topk if inference == "hard" else iterative)


@POOLING.register("gumbel_topk")
class GumbelTopKPooler(TopKPooler):
    """Pools by sampling a relaxed subset (Xie and Ermon 2019); no noise when not training.

    Arguments are those of `IterativeTopKPooler`.
    """

    keeps_queries = False

    def __init__(self, k: int, scorer: Scorer, temperature: Positive = 1.0, inference: Inference = "soft") -> None:
        gumbel = partial(gumbel_topk, temperature=temperature)
        evaluate = hard_topk if inference == "hard" else partial(gumbel, noise=False)
        super().__init__(k, scorer, partial(gumbel, noise=True), evaluate)

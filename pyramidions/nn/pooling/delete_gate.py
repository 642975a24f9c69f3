"""Pooling by a gate that deletes vectors: softly while training, then for good."""

from typing import ClassVar

import torch
from torch import Tensor, distributed, nn

from pyramidions.base.arguments import Count, Share
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.options import Positive, Within
from pyramidions.nn.pooling.pooler import POOLING, Pooled, Pooler, selected
from pyramidions.nn.pooling.topk import Attached
from pyramidions.nn.regularised import Regularised
from pyramidions.nn.sequence import PoolingContext, Sequence

# The controller's sums are kept as whole numbers of this size, which half precision leaves as they are.
_UNIT = 1e-9


@POOLING.register("delete_gate")
class DeleteGatePooler(Regularised, Pooler):
    """Hands on the vectors that a gate does not delete (Kallini et al. 2025, MrT5, section 3).

    A vector is deleted by d = sigmoid(-logit), where the logit is linear in the normalised vector. Training hands on
    all vectors, and adds -``scale`` d to the scores of each as a key, in all later layers and in the decoder.
    Evaluation drops vectors whose d is above ``threshold``, but never all of a document. Of more than k vectors those
    with the smallest d stay. What stays keeps its bias, which training has made use of; the released code drops it.

    The loss of training is a weight times the mean of -``scale`` d. A controller sets the weight after each batch, in
    proportion to how much the share of deleted vectors is below ``share``, smoothed, and to the sum of that over all
    batches. A weight below 0 is 0.

    The text decides how many vectors there are, so that the host waits for a GPU once.

    Args:
        scale: what a deleted vector's scores lose.
        threshold: d above which evaluation drops a vector.
        share: of vectors that are to be deleted.
        keeps_bias: in evaluation, too.
        proportional, integral: gains of the controller.
    """

    biases_keys = True
    most: ClassVar = {"threshold": 1.0}
    controller: Tensor

    def __init__(
        self,
        k: Count,
        embed_dim: int,
        scale: Positive = 30.0,
        threshold: Share = 0.5,
        share: Within = 0.5,
        keeps_bias: bool = True,
        proportional: Positive = 0.5,
        integral: Positive = 1e-5,
    ) -> None:
        super().__init__()
        self.k = k
        self.norm = nn.RMSNorm(embed_dim, eps=1e-6)
        self.gate = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.gate.weight)
        nn.init.ones_(self.gate.bias)
        self.scale, self.threshold, self.share, self.keeps_bias = scale, threshold, share, keeps_bias
        self.proportional, self.integral = proportional, integral
        self.register_buffer("controller", torch.zeros(2, dtype=torch.int64))

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, real = sequence.x, ~sequence.padding_mask
        logits = full_precision(self.gate(self.norm(x.to(self.gate.weight.dtype))).squeeze(-1))
        deleted = (-logits).sigmoid()
        kept = self._kept(logits.detach(), real)
        pooled, sources = selected(x, kept, self.k)
        key_bias = None
        if self.training:
            self._loss = self._controlled(deleted.masked_fill(~real, 0.0), real)
        if self.training or self.keeps_bias:
            key_bias = (-self.scale * deleted).gather(1, sources).masked_fill(pooled.padding_mask, 0.0)
        return pooled._replace(x=Attached.apply(pooled.x, logits), key_bias=key_bias)

    def _kept(self, logits: Tensor, real: Tensor) -> Tensor:
        """Return which real vectors are handed on: (B, L) twice -> (B, L)."""
        kept = real if self.training else real & ((-logits).sigmoid() <= self.threshold)
        ranked = logits.masked_fill(~real, -torch.inf)
        best = ranked.topk(min(self.k, ranked.size(1)), dim=1).indices
        # One of a document always stays.
        taken = kept.gather(1, best) | (torch.arange(best.size(1), device=best.device) == 0)
        return torch.zeros_like(kept).scatter(1, best, taken) & real

    def _controlled(self, deleted: Tensor, real: Tensor) -> Tensor:
        """Return the loss of a batch, and set the weight for the next one."""
        count = real.sum().clamp(min=1)
        smoothed, summed = self.controller.double() * _UNIT
        weight = (smoothed + summed).clamp(min=0.0)
        seen = torch.stack([(deleted.detach() > self.threshold).sum(), count])
        # All workers of a run have one controller: each of them computes each step.
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(seen)
        error = self.share - seen[0] / seen[1]
        sums = 0.9 * smoothed + 0.1 * self.proportional * error, summed + self.integral * error
        self.controller.copy_((torch.stack(sums) / _UNIT).round())
        return weight.to(deleted.dtype) * -self.scale * deleted.sum() / count

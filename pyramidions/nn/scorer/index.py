"""The scorer that reads positions."""

import torch
from torch import Tensor

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.scorer.core import SCORER, Scorer
from pyramidions.nn.sequence import Sequence


@SCORER.register("index")
class IndexScorer(Scorer):
    """1 at every stride-th position, 0 elsewhere: selection without a look at content.

    Args:
        stride: the configured length over the configured k, whatever a batch's length.
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        every = torch.arange(sequence.x.size(1), device=sequence.x.device) % self.stride == 0
        return every.float().expand(sequence.x.shape[:2])

"""The linear scorer."""

import torch
from torch import Tensor, nn

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.scorer.core import SCORER, Scorer, at_least_float32, project, score_of
from pyramidions.nn.sequence import Sequence


@SCORER.register("linear")
class LinearScorer(Scorer):
    """sigmoid(linear(x)) + 1e-5, as the authors' code scores (Pietruszka et al. 2022, equation (1)).

    Args:
        embed_dim: D.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        with torch.autocast(sequence.x.device.type, enabled=False):
            return score_of(project(self.linear, at_least_float32(sequence.x)).squeeze(-1))

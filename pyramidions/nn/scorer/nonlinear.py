"""The scorer of two layers."""

import torch
from torch import Tensor, nn

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.scorer.core import SCORER, Scorer, at_least_float32, project, score_of
from pyramidions.nn.sequence import Sequence


@SCORER.register("nonlinear")
class NonlinearScorer(Scorer):
    """Two layers with a tanh in between, in the form of RoBERTa's classification head (Liu et al. 2019).

    Args:
        embed_dim: D.
        dropout: probability of dropping a value before each layer while training.
    """

    def __init__(self, embed_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.linear = nn.Linear(embed_dim, 1)
        for layer in (self.dense, self.linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        with torch.autocast(sequence.x.device.type, enabled=False):
            hidden = project(self.dense, self.dropout(at_least_float32(sequence.x))).tanh()
            return score_of(project(self.linear, self.dropout(hidden)).squeeze(-1))

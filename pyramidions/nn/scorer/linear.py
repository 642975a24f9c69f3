"""Scorers of one layer and of two."""

import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.functional.precision import project
from pyramidions.nn.options import Probability
from pyramidions.nn.scorer.core import SCORER, LogitScorer


@SCORER.register("linear")
class LinearScorer(LogitScorer):
    """sigmoid(linear(x)) + 1e-5, as the authors' code scores (Pietruszka et al. 2022, equation (1)).

    Args:
        embed_dim: D.
        layer_norm: normalize what is rated. Behind pre-norm layers, whose output grows in training, the sigmoid can
            saturate without it: then all scores are alike, and nothing is learned any more. Not in the paper.
    """

    def __init__(self, embed_dim: int, layer_norm: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim) if layer_norm else None
        self.linear = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def hidden(self, x: Tensor) -> Tensor:
        if self.norm is None:
            return x
        weight, bias = self.norm.weight.to(x.dtype), self.norm.bias.to(x.dtype)
        return F.layer_norm(x, self.norm.normalized_shape, weight, bias, self.norm.eps)


@SCORER.register("nonlinear")
class NonlinearScorer(LogitScorer):
    """Two layers with a tanh in between, in the form of RoBERTa's classification head (Liu et al. 2019).

    Args:
        embed_dim: D.
        dropout: probability of dropping a value before each layer while training.
    """

    def __init__(self, embed_dim: int, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.linear = nn.Linear(embed_dim, 1)
        for layer in (self.dense, self.linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def hidden(self, x: Tensor) -> Tensor:
        return self.dropout(project(self.dense, self.dropout(x)).tanh())

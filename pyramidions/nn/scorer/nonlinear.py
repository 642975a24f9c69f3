"""The scorer of two layers."""

from torch import Tensor, nn

from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.options import Probability
from pyramidions.nn.scorer.core import SCORER, LogitScorer, project


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

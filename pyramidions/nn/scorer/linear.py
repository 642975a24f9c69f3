"""The linear scorer."""

import torch.nn.functional as F
from torch import Tensor, nn

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

"""The linear scorer."""

from torch import Tensor, nn

from pyramidions.nn.scorer.core import SCORER, LogitScorer


@SCORER.register("linear")
class LinearScorer(LogitScorer):
    """sigmoid(linear(x)) + 1e-5, as the authors' code scores (Pietruszka et al. 2022, equation (1)).

    Args:
        embed_dim: D.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def hidden(self, x: Tensor) -> Tensor:
        return x

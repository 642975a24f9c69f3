"""The scorer that reads a coordinate."""

from torch import Tensor

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.scorer.core import SCORER, Scorer, at_least_float32, score_of
from pyramidions.nn.sequence import Sequence


@SCORER.register("embedding")
class EmbeddingScorer(Scorer):
    """One coordinate of the representation itself, which the model learns to use (Pietruszka et al. 2022, table 4).

    Args:
        coordinate: which one.
    """

    def __init__(self, embed_dim: int, coordinate: int = 0) -> None:
        super().__init__()
        if not 0 <= coordinate < embed_dim:
            raise ValueError(f"`coordinate` must be at least 0 and below {embed_dim}, but is {coordinate}.")
        self.coordinate = coordinate

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return score_of(at_least_float32(sequence.x[..., self.coordinate]))

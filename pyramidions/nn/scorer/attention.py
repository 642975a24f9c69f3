"""The scorer that reads attention."""

from torch import Tensor

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.scorer.core import SCORER, Scorer
from pyramidions.nn.sequence import Sequence


@SCORER.register("attention")
class AttentionScorer(Scorer):
    """How much attention a position received in the layer before (Goyal et al. 2020, section 3.2); no gradient."""

    reads_attention = True

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return context.received()

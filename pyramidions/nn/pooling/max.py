"""Max pooling: the largest value of each window, one dimension at a time."""

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.functional.windows import window_mask, window_max
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.sequence import Sequence


@POOLING.register("max")
class MaxPooler(Pooler):
    """Hands on the largest values of each window of positions (Pietruszka et al. 2022, table 4).

    It has no provenance: each dimension of a pooled vector comes from a position of its own.

    Args:
        window: positions in a window, the configured length over the configured k, whatever a batch's length.
    """

    has_provenance = False
    takes_window = True

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        x, padding_mask = sequence.x, sequence.padding_mask
        return Pooled(window_max(x, padding_mask, self.window), window_mask(padding_mask, self.window))

    def kept(self, length: int) -> int:
        return -(-length // self.window)

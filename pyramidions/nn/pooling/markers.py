"""Pooling at markers: the first vector of each unit of the text."""

from torch import Tensor

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.sequence import Sequence


@POOLING.register("markers")
class MarkersPooler(Pooler):
    """Hands on the first vector of each sentence, turn or section (Liu and Lapata 2019, section 3.1).

    A unit starts with its document and at each marker, so that its first vector is the one there. After another pooling
    a vector belongs to the unit of its strongest member, and the first vector of a unit is the first handed on.

    The text decides how many vectors there are, so that the host waits for a GPU once.

    Args:
        k: vectors to hand on; of more units the first k.

    Raises:
        ValueError: a k below 1, or a sequence that does not say which units its vectors stand in.
    """

    reads_units = True

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"`k` must be at least 1, but is {k}.")
        self.k = k

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        starts = sequence.leads_unit
        lengths = self._counts(starts)
        # First vectors come before all others, in their order: (B, L) -> (B, K)
        sources = (~starts).byte().argsort(dim=1, stable=True)[:, : max([1, *lengths])]
        padding_mask = ~starts.gather(1, sources)
        x = sequence.x.gather(1, sources[..., None].expand(-1, -1, sequence.x.size(-1)))
        x = x.masked_fill(padding_mask[..., None], 0.0)
        # (B, K) -> (B, K, 1)
        return Pooled(x, padding_mask, sources[..., None], (~padding_mask)[..., None].to(x.dtype), lengths)

    def _counts(self, starts: Tensor) -> list[int]:
        """Return how many vectors each document hands on: (B, L) -> B integers."""
        if starts.is_meta:
            # Whoever counts costs without values gets the most that there may be.
            return [min(self.k, starts.size(1))] * len(starts)
        counts: list[int] = starts.sum(dim=1).clamp(max=self.k).tolist()
        return counts

"""Pooling at markers: the vectors where units of the text start."""

import torch
from torch import Tensor

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.pooling.core import POOLING, Pooled, Pooler
from pyramidions.nn.sequence import Sequence


@POOLING.register("markers")
class MarkersPooler(Pooler):
    """Hands on the vectors at the starts of sentences, turns or sections (Liu and Lapata 2019, section 3.1).

    A unit starts with its document and at each marker. After another pooling a vector is marked if its strongest member
    was. A document in which no vector is marked any more hands on its first vector.

    The text decides how many vectors there are, so that the host waits for a GPU once.

    Args:
        k: vectors to hand on; of more marked ones the first k.

    Raises:
        ValueError: a k below 1, or a sequence that does not say what is marked.
    """

    reads_marks = True

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"`k` must be at least 1, but is {k}.")
        self.k = k

    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        if sequence.marked is None:
            raise ValueError("Pooling at markers needs a sequence that says where units start, but this one does not.")
        starts = _starts(sequence.marked, ~sequence.padding_mask)
        lengths = self._counts(starts)
        # The marked positions come first, in their order: (B, L) -> (B, K)
        sources = (~starts).byte().argsort(dim=1, stable=True)[:, : max(1, *lengths)]
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


def _starts(marked: Tensor, real: Tensor) -> Tensor:
    """Return where units start (B, L), of a document without any start its first real position."""
    starts = marked & real
    first = real & (real.cumsum(dim=1) == 1)
    return torch.where(starts.any(dim=1, keepdim=True), starts, first)

"""Which vectors are global: all others read them, and they read all others (Beltagy et al. 2020, section 3.1)."""

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from pyramidions.base.device import has_values


class Marks:
    """The marked vectors of a batch.

    Args:
        marked: (B, L), True at them; never at padding.
        most: how many a document has at most, at least 1. It is a number on the host, so that a GPU need not be waited
            for; more than there are only cost time.
        appended: how many of them stand behind each document, `with_appended`.
    """

    def __init__(self, marked: Tensor, most: int, appended: int = 0) -> None:
        self.marked = marked
        self.most = max(1, min(most, marked.size(1)))
        self.appended = appended

    @cached_property
    def positions(self) -> Tensor:
        """The marked positions of each document in their order, followed by others where it has fewer: (B, G)."""
        return (~self.marked).byte().argsort(dim=1, stable=True)[:, : self.most]

    @cached_property
    def absent(self) -> Tensor:
        """True at what stands in `positions` without being marked: (B, G)."""
        return ~self.marked.gather(1, self.positions)

    def take(self, x: Tensor) -> Tensor:
        """Return the marked vectors: (B, L, D) -> (B, G, D), or (B, H, L, E) -> (B, H, G, E)."""
        return x.gather(-2, self._index(x))

    def put(self, x: Tensor, new: Tensor) -> Tensor:
        """Return ``x`` (B, H, L, E) with ``new`` (B, H, G, E) in place of the marked vectors."""
        kept = torch.where(self.absent[:, None, :, None], self.take(x), new.to(x.dtype))
        return x.scatter(2, self._index(x), kept)

    def _index(self, x: Tensor) -> Tensor:
        # (B, G) -> (B, G, D) or (B, H, G, E)
        index = self.positions[..., None] if x.dim() == 3 else self.positions[:, None, :, None]
        return index.expand(*x.shape[:-2], -1, x.size(-1))

    def packed(self, pack: Callable[[Tensor], Tensor]) -> "Marks":
        """Return the marks of a batch cut into blocks by ``pack``, (B, L) -> (N, M)."""
        marked = pack(self.marked)
        return self if marked.shape == self.marked.shape else Marks(marked, self.most)

    @classmethod
    def with_appended(cls, marks: "Marks | None", padding_mask: Tensor, appended: int) -> "Marks":
        """Return the marks of documents (B, L), or None, followed by so many marked vectors G: (B, L + G)."""
        marked = torch.zeros_like(padding_mask) if marks is None else marks.marked
        marked = torch.nn.functional.pad(marked, (0, appended), value=True)
        return cls(marked, appended + (0 if marks is None else marks.most), appended)

    def handed_on(self, strongest: Tensor, padding_mask: Tensor) -> "Marks":
        """Return the marks after a pooling: a vector (B, K) is marked if its ``strongest`` member is.

        A pooling never makes more of them. Where a marked vector is the strongest member of several, the first stay
        marked.
        """
        marked = self.marked.gather(1, strongest) & ~padding_mask
        return Marks(marked & (marked.cumsum(dim=1) <= self.marked.sum(dim=1, keepdim=True)), self.most)


def query_marks(tokens: Tensor, padding_mask: Tensor, separator: int) -> Marks:
    """Mark the query that stands before each document (B, L): all up to the first separator, which is marked, too.

    A separator with nothing behind it ends the document, which then has no query. The host waits for a GPU to learn
    how long the queries are.
    """
    real = ~padding_mask
    separators = tokens.eq(separator) & real
    document = real & (separators.cumsum(dim=1) > separators.long())
    marked = real & ~document & document.any(dim=1, keepdim=True)
    return Marks(marked, int(marked.sum(dim=1).max()) if has_values(marked) else 0)

"""What a decoder reads of an encoder."""

from typing import NamedTuple

from torch import Tensor


class Memory(NamedTuple):
    """Vectors that a cross-attention reads.

    Attributes:
        x: (B, K, D).
        padding_mask: (B, K), True at padding, or its `as_bias`, or None if there is no padding.
    """

    x: Tensor
    padding_mask: Tensor | None = None

    def select(self, documents: Tensor) -> "Memory":
        """Return the memory of ``documents`` (B',), in that order."""
        mask = self.padding_mask
        return Memory(self.x.index_select(0, documents), None if mask is None else mask.index_select(0, documents))

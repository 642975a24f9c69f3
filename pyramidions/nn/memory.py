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


class Memories(NamedTuple):
    """What the hypotheses of a batch read: a document's share one row of each memory.

    Attributes:
        each: one for each place that cross-attentions read.
        width: hypotheses of a document, W. They are consecutive rows of what a decoder reads.
    """

    each: tuple[Memory, ...]
    width: int = 1

    def reorder(self, order: Tensor, width: int) -> "Memories":
        """Return what the hypotheses ``order`` (B'W',) read, ``width`` W' of a document; see `staying`."""
        documents = staying(order, width, self.each[0].x.size(0), self.width)
        each = self.each if documents is None else tuple(memory.select(documents) for memory in self.each)
        return Memories(each, width)


def staying(order: Tensor, width: int, documents: int, before: int) -> Tensor | None:
    """Return the documents (B',) that a search goes on with, or None if all stay as they are.

    That is read off the number of hypotheses, so that the host waits for no GPU and most steps copy no memory.

    Args:
        order: (B'W',), hypotheses of before that go on. Those of a document stand together, and documents stay in
            their order.
        width: hypotheses of a document from now on, W'.
        documents: how many there were, B.
        before: hypotheses that each had, W.
    """
    return None if len(order) == documents * width else order[::width] // before

"""What flows through an encoder: vectors, and what is known about each of them."""

from typing import NamedTuple

from torch import Tensor


class Sequence(NamedTuple):
    """A batch of sequences of vectors.

    Attributes:
        x: (B, L, D).
        padding_mask: (B, L), True at padding.
        position: (B, L), the place of each vector in its document; a vector that a pooler mixed has the place of its
            strongest member. None after a pooling without provenance.
        lengths: number of real positions of each document, B integers on the host, if all padding is on the right;
            None if unknown.
        marked: (B, L), True where a unit of the text (a sentence, a turn, a section) starts. None if the encoder knows
            no marker, and after a pooling without provenance.
    """

    x: Tensor
    padding_mask: Tensor
    position: Tensor | None = None
    lengths: list[int] | None = None
    marked: Tensor | None = None

    @property
    def attention_mask(self) -> Tensor | None:
        """`padding_mask`, or None if there is known to be no padding: attention without a mask is faster."""
        full = self.lengths is not None and sum(self.lengths) == self.padding_mask.numel()
        return None if full else self.padding_mask

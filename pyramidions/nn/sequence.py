"""What flows through an encoder: vectors, and what is known of each of them."""

from typing import NamedTuple

from torch import Tensor


class Sequence(NamedTuple):
    """A batch of sequences of vectors.

    Attributes:
        x: (B, L, D).
        padding_mask: (B, L), True at padding.
        position: (B, L), where in its document each vector stands; of a vector that a pooler mixed, where its strongest
            member stands. None behind a pooling without provenance.
        lengths: real positions of each document, B numbers of the host, where padding comes after all of them; None if
            unknown.
    """

    x: Tensor
    padding_mask: Tensor
    position: Tensor | None = None
    lengths: list[int] | None = None

    @property
    def attention_mask(self) -> Tensor | None:
        """`padding_mask`, or None where nothing is known to be padding: attention without a mask is faster."""
        full = self.lengths is not None and sum(self.lengths) == self.padding_mask.numel()
        return None if full else self.padding_mask

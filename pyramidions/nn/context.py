"""What a layer offers, beside its output, to the pooler and the scorer that follow it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor


class Context(NamedTuple):
    """What the layer before offers.

    Attributes:
        received: returns how much attention each position received in that layer, (B, L), zero at padding; computed
            when it is asked for, without gradients.
        lengths: real positions of each document, B numbers, where padding comes after all of them; None if unknown.
    """

    received: Callable[[], Tensor]
    lengths: Sequence[int] | None = None

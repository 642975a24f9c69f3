"""What a stage offers, beside the sequence, to its pooler and the scorer in it."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class PoolingContext(NamedTuple):
    """What a pooler may ask for.

    Attributes:
        received: returns how much attention each position received in the layer before, (B, L), zero at padding;
            computed when it is asked for, without gradients.
    """

    received: Callable[[], Tensor]

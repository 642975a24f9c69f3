"""What a stage offers its pooler and scorer besides the sequence."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class PoolingContext(NamedTuple):
    """What a pooler may ask for.

    Attributes:
        received: returns how much attention each position received in the layer before, (B, L), zero at padding. It is
            computed when called, without gradients.
    """

    received: Callable[[], Tensor]

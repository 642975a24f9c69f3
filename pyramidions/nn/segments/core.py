"""The role of what pools segments, and the registry of kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.sublayer import State


class SegmentPooler(nn.Module, ABC):
    """Makes one vector of each segment.

    Boundaries are 1 at the last position of a segment and 0 elsewhere. Positions after the last boundary form no
    segment.
    """

    #: whether boundaries can learn from what becomes of the segments
    teaches_boundaries: ClassVar[bool]

    @abstractmethod
    def forward(self, x: Tensor, boundaries: Tensor) -> Tensor:
        """Pool whole sequences: (B, L, D), (B, L) -> (B, K, D), zeros after a row's last segment.

        K is the most segments of a row.
        """

    def new_state(self) -> State | None:
        """Return the state before the first cached step; None if steps need nothing of earlier ones."""
        return None

    def step(self, x: Tensor, boundaries: Tensor, state: State | None, padding_mask: Tensor | None = None) -> Tensor:
        """Pool the segments that new positions close, and extend the state in place.

        Args:
            x: (B, T, D), which follow those in ``state``.
            boundaries: (B, T).
            state: from `new_state`.
            padding_mask: (B, T), True at padding, which has no boundaries; or None.

        Returns:
            (B, K, D), zeros after the last segment that a row closes.
        """
        return self(x, boundaries)


SEGMENTS: Registry[SegmentPooler] = Registry("segments")

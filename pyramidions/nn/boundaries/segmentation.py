"""Where segments end: the role, the registry of kinds, and those that the text gives."""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Range
from pyramidions.base.registry import Registry


class HiddenStates(NamedTuple):
    """Hidden states of a text, or of the next part of it."""

    x: Tensor  # (B, L, D)
    tokens: Tensor | None = None  # (B, L), which they stand for; None if they stand for segments
    padding_mask: Tensor | None = None  # (B, L), True at padding; None if there is none
    start: int | Tensor = 0  # the position of the first, of all rows or (B, 1)
    before: Tensor | None = None  # (B, D), the hidden state in front of the first; None at the beginning of a text


class Segmentation(NamedTuple):
    """Where segments end."""

    # (B, L), exactly 1 at the last position of a segment and 0 elsewhere, in float32 or better; of a kind that learns
    # from what becomes of the segments, with a gradient
    boundaries: Tensor
    # (B, L), of a boundary at each position, in float32 or better; None if the kind predicts none
    logits: Tensor | None = None
    padding_mask: Tensor | None = None  # (B, L), True at padding, which has no boundaries; None if there is none

    @property
    def closed(self) -> Tensor:
        """How many segments each row has, in integers: (B,)."""
        return (self.boundaries != 0).sum(dim=1)

    @property
    def lengths(self) -> Tensor:
        """How many positions of each row are real, in integers: (B,)."""
        if self.padding_mask is None:
            return self.closed.new_full((len(self.boundaries),), self.boundaries.size(1))
        return (~self.padding_mask).sum(dim=1)

    @property
    def probabilities(self) -> Tensor | None:
        """Of a boundary at each position, (B, L); None if the kind predicts none."""
        return None if self.logits is None else self.logits.sigmoid()


class Boundaries(nn.Module, ABC):
    """Marks the last position of each segment. A mark depends on no later position."""

    #: whether boundaries learn from what becomes of the segments
    learns_from_segments: ClassVar[bool] = False
    #: whether their probabilities learn from what an upsampler makes of segments
    learns_from_upsampling: ClassVar[bool] = False
    #: whether they have probabilities
    predicts: ClassVar[bool] = True
    #: whether the vectors may stand for segments, and not for tokens only
    marks_segments: ClassVar[bool] = False

    @abstractmethod
    def forward(self, states: HiddenStates) -> Segmentation:
        """Mark boundaries."""

    def targets(self, logits: Tensor, marked: Tensor | None = None) -> Tensor | None:
        """Return where boundaries should be, (B, L), given the ``logits`` of the tokens after each, (B, L, V).

        ``marked`` (B, L) says where a tokenizer has them, or None. None if the kind is not supervised.
        """
        return None

    def loss(
        self, segmentation: Segmentation, targets: Tensor | None = None, known: Tensor | None = None
    ) -> Tensor | None:
        """Return what boundaries add to the loss, in nats, summed over each row: (B,), or None.

        A kind that is supervised needs ``targets`` (B, L), True at boundaries. ``known`` (B, L) is False where they
        mean nothing; None if they mean something everywhere but at padding.
        """
        return None


BOUNDARIES: Registry[Boundaries] = Registry("boundaries")


def without_padding(boundaries: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Return boundaries that are zero at padding: (B, L)."""
    return boundaries if padding_mask is None else boundaries.masked_fill(padding_mask, 0.0)


@BOUNDARIES.register("fixed")
class FixedBoundaries(Boundaries):
    """Every ``factor``-th position ends a segment (Nawrot et al. 2022; 2023, section 2.2).

    Args:
        factor: positions of a segment.
    """

    predicts = False
    marks_segments = True

    def __init__(self, factor: Annotated[int, Range(2)] = 2) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, states: HiddenStates) -> Segmentation:
        x = states.x
        number = torch.arange(1, x.size(1) + 1, device=x.device) + states.start
        boundaries = (number % self.factor == 0).float().expand(len(x), -1)
        return Segmentation(without_padding(boundaries, states.padding_mask), padding_mask=states.padding_mask)


@BOUNDARIES.register("whitespace")
class WhitespaceBoundaries(Boundaries):
    """A space ends the segment of the word before it (Nawrot et al. 2023, section 3.1.4)."""

    predicts = False

    def __init__(self, space_idx: int | None) -> None:
        super().__init__()
        if space_idx is None:
            raise ValueError("`boundaries` whitespace needs a vocabulary with a space, but there is none in it.")
        self.space_idx = space_idx

    def forward(self, states: HiddenStates) -> Segmentation:
        if states.tokens is None:
            raise ValueError("`boundaries` whitespace reads tokens, but segments are none.")
        boundaries = (states.tokens == self.space_idx).float()
        return Segmentation(without_padding(boundaries, states.padding_mask), padding_mask=states.padding_mask)

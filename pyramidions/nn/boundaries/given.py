"""Boundaries that nothing predicts."""

from typing import Annotated

import torch

from pyramidions.base.arguments import Range
from pyramidions.nn.boundaries.core import BOUNDARIES, Boundaries, HiddenStates, Segmentation, without_padding


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
    """A space ends the segment of the word before it (Nawrot et al. 2023, section 3.1.4).

    Args:
        space_idx: the token that is the space.

    Raises:
        ValueError: the vocabulary has no space.
    """

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

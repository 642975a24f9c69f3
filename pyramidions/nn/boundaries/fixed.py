"""Boundaries at equal distances."""

from typing import Annotated

import torch
from torch import Tensor

from pyramidions.base.arguments import Range
from pyramidions.nn.boundaries.core import BOUNDARIES, Boundaries, Segmentation, without_padding


@BOUNDARIES.register("fixed")
class FixedBoundaries(Boundaries):
    """Every ``factor``-th position ends a segment (Nawrot et al. 2022; 2023, section 2.2).

    Args:
        factor: positions of a segment.
    """

    marks_segments = True

    def __init__(self, factor: Annotated[int, Range(2)] = 2) -> None:
        super().__init__()
        self.factor = factor

    def forward(
        self, x: Tensor, tokens: Tensor | None, padding_mask: Tensor | None = None, start: int | Tensor = 0
    ) -> Segmentation:
        number = torch.arange(1, x.size(1) + 1, device=x.device) + start
        boundaries = (number % self.factor == 0).float().expand(len(x), -1)
        return Segmentation(without_padding(boundaries, padding_mask), padding_mask=padding_mask)

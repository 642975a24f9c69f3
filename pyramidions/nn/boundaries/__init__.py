"""Ways to mark where segments end, one kind per file; importing this package fills the registry."""

from pyramidions.nn.boundaries.core import BOUNDARIES, Boundaries, Segmentation
from pyramidions.nn.boundaries.entropy import EntropyBoundaries
from pyramidions.nn.boundaries.fixed import FixedBoundaries
from pyramidions.nn.boundaries.gumbel import GumbelBoundaries
from pyramidions.nn.boundaries.supervised import SupervisedBoundaries
from pyramidions.nn.boundaries.unigram import UnigramBoundaries
from pyramidions.nn.boundaries.whitespace import WhitespaceBoundaries

__all__ = [
    "BOUNDARIES",
    "Boundaries",
    "EntropyBoundaries",
    "FixedBoundaries",
    "GumbelBoundaries",
    "Segmentation",
    "SupervisedBoundaries",
    "UnigramBoundaries",
    "WhitespaceBoundaries",
]

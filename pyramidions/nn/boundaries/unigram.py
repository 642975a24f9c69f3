"""Boundaries of a tokenizer's pieces."""

from pyramidions.nn.boundaries.core import BOUNDARIES
from pyramidions.nn.boundaries.supervised import SupervisedBoundaries


@BOUNDARIES.register("unigram")
class UnigramBoundaries(SupervisedBoundaries):
    """Predicts where the pieces of a Unigram tokenizer (Kudo 2018) end (Nawrot et al. 2023, section 3.1.2)."""

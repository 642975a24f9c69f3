"""Projections, one kind per file; importing this package fills the registry."""

from pyramidions.nn.projections.core import PROJECTIONS, Projections
from pyramidions.nn.projections.dense import DenseProjections

__all__ = ["PROJECTIONS", "DenseProjections", "Projections"]

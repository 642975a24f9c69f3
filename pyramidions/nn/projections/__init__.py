"""Projections, one kind per file; importing this package fills the registry."""

from pyramidions.nn.projections.conv import ConvProjections
from pyramidions.nn.projections.core import PROJECTIONS, Projections
from pyramidions.nn.projections.dense import DenseProjections
from pyramidions.nn.projections.multiplicative import MultiplicativeProjections

__all__ = ["PROJECTIONS", "ConvProjections", "DenseProjections", "MultiplicativeProjections", "Projections"]

"""Projections, one kind per file; importing this package fills the registry."""

from pyramidions.nn.projections.conv import ConvProjections as ConvProjections
from pyramidions.nn.projections.dense import DenseProjections as DenseProjections
from pyramidions.nn.projections.multiplicative import MultiplicativeProjections as MultiplicativeProjections
from pyramidions.nn.projections.projections import PROJECTIONS as PROJECTIONS
from pyramidions.nn.projections.projections import Projections as Projections

"""Positions, one kind per file; importing this package fills the registry."""

from pyramidions.nn.positions.axial import AxialPositions
from pyramidions.nn.positions.core import POSITIONS, Positions
from pyramidions.nn.positions.learned import LearnedPositions
from pyramidions.nn.positions.sinusoidal import SinusoidalPositions

__all__ = ["POSITIONS", "AxialPositions", "LearnedPositions", "Positions", "SinusoidalPositions"]

"""Positions, one kind per file; importing this package fills the registry."""

from pyramidions.nn.positions.core import POSITIONS as POSITIONS
from pyramidions.nn.positions.core import AxialPositions as AxialPositions
from pyramidions.nn.positions.core import LearnedPositions as LearnedPositions
from pyramidions.nn.positions.core import Positions as Positions
from pyramidions.nn.positions.core import SinusoidalPositions as SinusoidalPositions

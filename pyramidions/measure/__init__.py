"""What a model costs: multiplications, parameters and activations by closed form, held against torch's counters."""

from pyramidions.measure.activations import NotModelledError, activations
from pyramidions.measure.check import Comparison, Pair, compare, shrink
from pyramidions.measure.claims import Claim, claims
from pyramidions.measure.cost import Multiplications, multiplications, parameters
from pyramidions.measure.orders import orders
from pyramidions.measure.shapes import DECODER, Lengths, Part

__all__ = [
    "DECODER",
    "Claim",
    "Comparison",
    "Lengths",
    "Multiplications",
    "NotModelledError",
    "Pair",
    "Part",
    "activations",
    "claims",
    "compare",
    "multiplications",
    "orders",
    "parameters",
    "shrink",
]

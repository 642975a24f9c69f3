"""What a model costs: multiplications, parameters and activations, counted while it runs on tensors without memory."""

from pyramidions.measure.check import Comparison, compare
from pyramidions.measure.claims import Claim, claims
from pyramidions.measure.cost import Cost, Lengths, cost_of
from pyramidions.measure.orders import orders
from pyramidions.measure.parts import DECODER, Part
from pyramidions.measure.small_instance import shrink

__all__ = [
    "DECODER",
    "Claim",
    "Comparison",
    "Cost",
    "Lengths",
    "Part",
    "claims",
    "compare",
    "cost_of",
    "orders",
    "shrink",
]

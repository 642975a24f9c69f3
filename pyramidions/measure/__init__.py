"""What a model costs: multiplications, parameters and activations, counted while it runs on tensors without memory."""

from pyramidions.measure.claims import Claim, claims, orders
from pyramidions.measure.cost import Cost, Lengths, cost_of
from pyramidions.measure.parts import CostPart
from pyramidions.measure.small_instance import Comparison, compare, shrink

__all__ = ["Claim", "Comparison", "Cost", "Lengths", "CostPart", "claims", "compare", "cost_of", "orders", "shrink"]

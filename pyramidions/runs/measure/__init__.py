"""What a model costs: multiplications, parameters and activations, counted while it runs on tensors without memory."""

from pyramidions.runs.measure.cost import Cost, Lengths, cost_of
from pyramidions.runs.measure.counter import CostPart
from pyramidions.runs.measure.small_instance import Comparison, compare, shrink

__all__ = ["Comparison", "Cost", "Lengths", "CostPart", "compare", "cost_of", "shrink"]

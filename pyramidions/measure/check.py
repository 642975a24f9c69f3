"""What is counted without computing, beside what is counted while a small instance computes."""

from typing import Any, NamedTuple

from pyramidions.measure.cost import Cost, Lengths, cost_of, cost_of_run
from pyramidions.measure.parts import Part
from pyramidions.models import PyramidionConfig, build


class Comparison(NamedTuple):
    """What a small instance costs.

    Attributes:
        counted: without computing.
        measured: while it computes.
    """

    counted: Cost
    measured: Cost

    def agrees(self) -> bool:
        """Return whether all figures are equal."""
        return self.counted == self.measured

    def as_json(self) -> dict[str, Any]:
        """Return both figures of each part as plain values."""
        counted, measured = (cost.as_json() for cost in self)

        def pairs(of: str) -> dict[Part, dict[str, int]]:
            return {part: {"counted": counted[of][part], "measured": measured[of][part]} for part in Part}

        return {
            "lengths": counted["lengths"],
            **{of: pairs(of) for of in ("matrix_products", "activation_bytes")},
            "agrees": self.agrees(),
        }


def compare(config: PyramidionConfig, lengths: Lengths) -> Comparison:
    """Count what a model costs without computing, then while it computes on random tokens on the CPU.

    Args:
        config: the model's shape, small.
        lengths: of the batch, short.

    Raises:
        UserError: as `cost_of`.
    """
    return Comparison(cost_of(config, lengths), cost_of_run(build(config, lengths.vocab_size).train(), lengths))

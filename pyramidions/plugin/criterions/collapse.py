"""Whether a scorer still tells the vectors of a document apart."""

import logging
from typing import Any

from pyramidions.plugin.criterions.summed import means

logger = logging.getLogger(__name__)

#: Begins the names under which spreads of scores are logged; the number of the layer follows.
SPREAD = "spread_"

#: Scores of a document that lie this close together have collapsed: in the presets' peaked softmax, of base 20, the
#: best outweighs the worst by 3%, so that soft top-k is a plain mean.
COLLAPSED = 0.01


class CollapseWatch:
    """Warns once of each scorer that rates all vectors of a document alike."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def look(self, logging_outputs: list[dict[str, Any]]) -> None:
        """Check what a criterion logged for an update, or for a validation, over all workers."""
        for name, spread, _ in means(logging_outputs, SPREAD):
            if spread < COLLAPSED and name not in self._told:
                self._told.add(name)
                logger.warning(
                    "the scorer behind encoder layer %s rates all vectors of a document alike: its scores lie within "
                    "%.4f of each other, and soft top-k is little more than a plain mean. A lower --lr can prevent it; "
                    "with --normalize-before, a norm before a linear scorer does "
                    """(--scorer 'linear(layer_norm=True)').""",
                    name.removeprefix(SPREAD),
                    spread,
                )

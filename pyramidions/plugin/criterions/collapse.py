"""Whether a scorer still tells the vectors of a document apart."""

import logging
from collections.abc import Iterator
from typing import Any

from fairseq import utils

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
        """Look at what a criterion logged of an update, or of a validation, over all workers."""
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


def means(logging_outputs: list[dict[str, Any]], *prefixes: str) -> Iterator[tuple[str, float, float]]:
    """Yield name, mean and count of what is logged as a sum and a count, over all batches of all workers.

    Args:
        logging_outputs: of a criterion.
        prefixes: of the names.
    """
    names = {key.removesuffix("_sum") for log in logging_outputs for key in log if key.startswith(prefixes)}
    for name in sorted(name for name in names if not name.endswith("_count")):
        # Plain floats: the metrics in a checkpoint must load without pickled code.
        total, count = (
            float(utils.item(sum(log.get(f"{name}_{what}", 0) for log in logging_outputs))) for what in ("sum", "count")
        )
        if count > 0:
            yield name, total / count, count

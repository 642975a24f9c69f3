"""The names that 0.1.0 gave the weights, for its checkpoints and exports."""

import re

from torch import Tensor

# "core." stands in the names of checkpoints, and not in those of exports.
_CODER = r"^((?:en|de)coder\.(?:core\.)?)"
_LAYER = rf"{_CODER}((?:layers|poolers)\.\d+\.(?:layer\.)?)"
_RENAMED = [
    (rf"{_CODER}embedding\.", r"\1embedder.tokens."),
    # The layer of funnel pooling: its attention, from pooled to unpooled positions, is cross-attention today.
    (rf"{_CODER}(poolers\.\d+\.layer\.)self_attention\.", r"\1\2cross_attention."),
    (rf"{_CODER}(poolers\.\d+\.layer\.)around_attention\.", r"\1\2around_cross_attention."),
    (rf"{_LAYER}(self|cross)_attention\.", r"\1\2sublayers.\3_attention.function.projections."),
    (rf"{_LAYER}feed_forward\.", r"\1\2sublayers.feed_forward.function."),
    (rf"{_LAYER}around_attention\.", r"\1\2sublayers.self_attention."),
    (rf"{_LAYER}around_(\w+)\.", r"\1\2sublayers.\3."),
]


def rename_from_0_1(weights: dict[str, Tensor]) -> None:
    """Rename, in place, weights that 0.1.0 saved; others stay as they are.

    Their order stays, too: an optimizer's state goes by it.
    """
    renamed = {_today(name): weight for name, weight in weights.items()}
    weights.clear()
    weights.update(renamed)


def _today(name: str) -> str:
    for pattern, new in _RENAMED:
        name = re.sub(pattern, new, name)
    return name

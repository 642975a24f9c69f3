"""What scoring and pooling keep for the backward pass, in closed form: one small function a kind, of one document."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pyramidions.measure.kinds import tournament_slots
from pyramidions.measure.shapes import PoolerRun
from pyramidions.models import PyramidionConfig
from pyramidions.models.fields import parse_options
from pyramidions.nn.pooling import MaxPooler, MeanPooler


def size(floats: int = 0, indices: int = 0, bools: int = 0) -> int:
    """Return the bytes of so many values in float32, int64 and bool."""
    return 4 * floats + 8 * indices + bools


class ScorerMemory(NamedTuple):
    """What a scorer keeps.

    Attributes:
        reads: the vectors that it scores.
        hidden: a second vector for each.
        learns: scores have a gradient, so that selection keeps what it does with them.
    """

    reads: bool = False
    hidden: bool = False
    learns: bool = True


SCORER_MEMORY = {
    "attention": ScorerMemory(learns=False),
    "embedding": ScorerMemory(),
    "index": ScorerMemory(learns=False),
    "linear": ScorerMemory(reads=True),
    "nonlinear": ScorerMemory(reads=True, hidden=True),
    "random": ScorerMemory(learns=False),
}


class _Selected(NamedTuple):
    """Bytes that a selection keeps, and bytes of the mask it hands on, 0 where that is among them."""

    kept: int
    mask: int


def _hard(length: int, pooled: int, learns: bool, peaked: bool) -> _Selected:
    # Which are selected, and which of them are padding; the order of all scores, and themselves.
    kept = size(indices=pooled, bools=pooled)
    return _Selected(kept + (size(indices=length, floats=length) if learns else 0), 0)


def _tournament(length: int, pooled: int, learns: bool, peaked: bool) -> _Selected:
    slots = tournament_slots(length, pooled)
    # Members and their weights, for the one pass over the embeddings.
    kept = size(indices=slots, floats=slots)
    if not learns:
        return _Selected(kept, slots)
    kept += size(bools=slots + pooled)  # slots without content, in the beginning and in the end
    candidates = slots
    while candidates > pooled:
        pairs = candidates // 2
        # The order by score, the weaker of each pair, the order in the document; scores before and after.
        kept += size(indices=candidates + 2 * pairs, floats=candidates + pairs)
        # The play of each pair; weights of the members, of the stronger and the weaker, and of both joined.
        kept += size(floats=(8 if peaked else 5) * pairs + 2 * slots, bools=3 * pairs)
        if candidates < slots:  # in the first round they are constants
            kept += size(floats=pairs + slots)
        candidates = pairs
    return _Selected(kept, slots)


#: pooling kind -> (L, K, whether scores learn, whether the softmax is peaked) -> what the selection keeps
_SELECTIONS: dict[str, Callable[[int, int, bool, bool], _Selected]] = {"hard_topk": _hard, "soft_topk": _tournament}


def _mean(pooled: int, window: int, dim: int) -> int:
    # Where there is no padding, and the count of that.
    return size(bools=pooled * window, floats=pooled)


def _max(pooled: int, window: int, dim: int) -> int:
    # Where there is padding, windows and their largest values, which windows are empty.
    return size(bools=pooled * (window + 1), floats=pooled * (window + 1) * dim)


#: pooling kind -> (K, window, D) -> bytes
_WINDOWS: dict[str, Callable[[int, int, int], int]] = {"max": _max, "mean": _mean}

MODELLED_POOLING = (*_SELECTIONS, *_WINDOWS)


def pooling_memory(config: PyramidionConfig, runs: Iterable[PoolerRun], length: int, batch: int) -> int:
    """Return the bytes that all poolings of a batch keep.

    Args:
        config: the model's shape, of modelled kinds.
        runs: its poolers, on one document.
        length: tokens of a document.
        batch: B.
    """
    scorer, dim = SCORER_MEMORY[config.scorer], config.embed_dim
    peaked = parse_options(config.pooling_args, "pooling_args").get("base", 20.0) is not None
    kept, mask = 0, length
    for run in runs:
        if isinstance(run.pooler, (MeanPooler, MaxPooler)):
            kept += _WINDOWS[config.pooling](run.pooled, run.pooler.window, dim)
            continue
        padded = run.before.blocks * run.before.queries
        # Cut out of the blocks of several documents, what the scorer reads is made one piece.
        copied = batch > 1 and padded != run.length
        if scorer.reads:
            kept += size(floats=(run.length if copied else padded) * dim)
        if scorer.hidden:
            kept += size(floats=run.length * dim)
        if scorer.learns:
            kept += size(floats=run.length)  # its sigmoid
            if run.length <= run.pooled or config.pooling != "soft_topk":
                # Where padding is, of which a tournament makes a mask of its own; unpooled, it stays the same.
                kept, mask = kept + mask, 0
        if run.length <= run.pooled:
            continue
        if copied or not scorer.reads:
            kept += size(floats=padded * dim)  # what is selected from, as it lies in its blocks
        if scorer.learns:
            kept += size(floats=run.length)  # scores before they are bounded
        selected = _SELECTIONS[config.pooling](run.length, run.pooled, scorer.learns, peaked)
        kept, mask = kept + selected.kept, selected.mask
    return batch * kept

"""What top-k operators share, and the hard one: the best vectors as they are."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class TopK(NamedTuple):
    """What a top-k operator selected, in the order of the input."""

    x: Tensor  # (B, K, D), the selected vectors; zero at padding, unless all passed through unchanged
    padding_mask: Tensor  # (B, K), True where a document had no vector left to give
    scores: Tensor  # (B, K), the scores that the selected vectors carry; zero at padding
    sources: Tensor  # (B, K, G), which inputs a vector is made of; of a tournament, its winner first
    weights: Tensor  # (B, K, G), how much of each; they sum to 1, and to 0 at padding


def prepare(
    x: Tensor, scores: Tensor, k: int, padding_mask: Tensor | None, select: Callable[[Tensor, Tensor], TopK]
) -> TopK:
    """Check the arguments of an operator, and let it ``select`` where there is something to select.

    It is given scores in float32 at least and within a quarter of their type's range, and a mask. Other arguments are
    those of the operators. Raises ValueError for shapes that do not fit, or a k below 1.
    """
    if k < 1:
        raise ValueError(f"`k` must be at least 1, but is {k}.")
    if x.dim() != 3 or scores.shape != x.shape[:2]:
        raise ValueError(
            f"`x` must be (B, L, D) and `scores` (B, L), but they are {tuple(x.shape)} and {tuple(scores.shape)}."
        )
    if padding_mask is None:
        padding_mask = torch.zeros_like(scores, dtype=torch.bool)
    elif padding_mask.shape != scores.shape:
        raise ValueError(f"`padding_mask` must be (B, L) = {tuple(scores.shape)}, but is {tuple(padding_mask.shape)}.")
    scores = scores if scores.dtype == torch.float64 else scores.float()
    if scores.size(1) <= k:
        return _pass_through(x, scores, padding_mask)
    limit = torch.finfo(scores.dtype).max / 4  # the difference of any two is finite
    return select(scores.clamp(-limit, limit), padding_mask)


def _pass_through(x: Tensor, scores: Tensor, padding_mask: Tensor) -> TopK:
    batch, length = scores.shape
    sources = torch.arange(length, device=x.device).expand(batch, length)[..., None]
    weights = (~padding_mask)[..., None].to(x.dtype)
    return TopK(x, padding_mask, scores.masked_fill(padding_mask, 0.0), sources, weights)


def best_positions(scores: Tensor, padding_mask: Tensor, k: int) -> Tensor:
    """Return the positions of the k best, best first, padding last: (B, L) x 2 -> (B, K). Ties go to the earlier."""
    return scores.masked_fill(padding_mask, -torch.inf).argsort(dim=1, descending=True, stable=True)[:, :k]


def in_document_order(positions: Tensor, padding_mask: Tensor, length: int) -> Tensor:
    """Return the order (B, K) in which ``positions`` (B, K) rise, those that are padding last."""
    return (positions + padding_mask * length).argsort(dim=1)


def hard_topk(x: Tensor, scores: Tensor, k: int, *, padding_mask: Tensor | None = None) -> TopK:
    """Select the k vectors with the highest scores (Pietruszka et al. 2022, equation (3) and appendix B.1).

    Its gradient with respect to the scores is zero (equation (4)), so that no scorer learns through it. Arguments are
    those of `successive_halving_topk`. The selection has G = 1, in the order of the document.
    """

    def select(scores: Tensor, padding_mask: Tensor) -> TopK:
        best = best_positions(scores, padding_mask, k)
        empty = padding_mask.gather(1, best)
        order = in_document_order(best, empty, scores.size(1))
        best, empty = best.gather(1, order), empty.gather(1, order)
        kept = x.gather(1, best[..., None].expand(-1, -1, x.size(2))).masked_fill(empty[..., None], 0.0)
        weights = (~empty)[..., None].to(x.dtype)
        return TopK(kept, empty, scores.gather(1, best).masked_fill(empty, 0.0), best[..., None], weights)

    return prepare(x, scores, k, padding_mask, select)

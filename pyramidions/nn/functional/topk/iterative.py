"""Iterative relaxations of top-k: k softmaxes over all scores, one after the other."""

import torch
from torch import Tensor

from pyramidions.nn.functional.topk.selection import TopK, best_positions, in_document_order, prepare


def iterative_topk(
    x: Tensor, scores: Tensor, k: int, *, padding_mask: Tensor | None = None, temperature: float = 1.0
) -> TopK:
    """Select by k softmaxes with masking (Goyal et al. 2018, as Pietruszka et al. 2022 compare with it).

    The i-th vector is the mean of all inputs but the i - 1 best, weighted by a softmax of their scores: each
    softmax masks the winners of those before it. Costs O(kL) exponentials and a (B, K, L) matrix of weights. The
    ``temperature`` divides the scores; towards 0 the selection becomes hard. Other arguments are those of
    `successive_halving_topk`. The selection has G = L, in the order of the winners' positions.
    """
    _check(temperature)

    def select(scores: Tensor, padding_mask: Tensor) -> TopK:
        logits = scores.masked_fill(padding_mask, -torch.inf)
        best = best_positions(scores, padding_mask, k)
        # rank of each position among the best k, k for all others: (B, L)
        ranks = torch.full_like(best, k)[:, :1].expand(-1, scores.size(1)).scatter(1, best, _count(best))
        # (B, K, L): row i leaves out what won before it
        rows = logits[:, None].masked_fill(ranks[:, None] < _count(best)[..., None], -torch.inf)
        return _mix(x, scores, padding_mask, best, _softmax(rows, temperature))

    return prepare(x, scores, k, padding_mask, select)


def gumbel_topk(
    x: Tensor,
    scores: Tensor,
    k: int,
    *,
    padding_mask: Tensor | None = None,
    temperature: float = 1.0,
    noise: bool = True,
) -> TopK:
    """Sample a relaxed subset of size k (Xie and Ermon 2019, algorithm 2, equations (7) to (9)).

    Gumbel noise is added to the scores, unless at inference; then k softmaxes run one after the other, each lowering
    what it took: alpha <- alpha + log(1 - a). Arguments and selection are those of `iterative_topk`: row i stands where
    the i-th best of the perturbed scores does.
    """
    _check(temperature)

    def select(scores: Tensor, padding_mask: Tensor) -> TopK:
        keys = scores
        if noise:
            # -log(-log u) with u in (0, 1) is standard Gumbel noise
            tiny = torch.finfo(scores.dtype).tiny
            keys = scores - torch.rand_like(scores).clamp(min=tiny).log().neg().clamp(min=tiny).log()
        logits = keys.masked_fill(padding_mask, -torch.inf)
        best = best_positions(keys, padding_mask, k)
        rows = []
        for _ in range(best.size(1)):
            taken = _softmax(logits, temperature)
            rows.append(taken)
            # What was taken whole stays out; everything else keeps a finite logit.
            left = (1 - taken).clamp(min=torch.finfo(taken.dtype).tiny)
            logits = logits + left.log()
        return _mix(x, scores, padding_mask, best, torch.stack(rows, dim=1))

    return prepare(x, scores, k, padding_mask, select)


def _check(temperature: float) -> None:
    if temperature <= 0:
        raise ValueError(f"`temperature` must be positive, but is {temperature}.")


def _count(best: Tensor) -> Tensor:
    """0, 1, ... K - 1 for every document: (B, K)."""
    return torch.arange(best.size(1), device=best.device).expand_as(best)


def _softmax(logits: Tensor, temperature: float) -> Tensor:
    """Softmax over the last dimension, zeros where nothing is left to choose from."""
    highest = logits.detach().amax(dim=-1, keepdim=True)
    nothing = highest.isneginf()
    # Shifted before the division, which may then underflow but never overflow.
    shifted = (logits - highest.masked_fill(nothing, 0.0)).masked_fill(nothing, 0.0)
    return (shifted / temperature).softmax(dim=-1).masked_fill(nothing, 0.0)


def _mix(x: Tensor, scores: Tensor, padding_mask: Tensor, best: Tensor, weights: Tensor) -> TopK:
    """Apply weight rows (B, K, L), where row i chose ``best[:, i]``, in the order of the document."""
    length = scores.size(1)
    # A document of at most K tokens hands them on as they are, whatever it is batched with.
    one_hot = torch.zeros_like(weights).scatter(2, best[..., None], 1.0)
    short = (~padding_mask).sum(dim=1) <= best.size(1)
    weights = torch.where(short[:, None, None], one_hot, weights)
    empty = padding_mask.gather(1, best)
    order = in_document_order(best, empty, length)
    empty = empty.gather(1, order)
    weights = weights.gather(1, order[..., None].expand_as(weights)).masked_fill(empty[..., None], 0.0)
    clean = x.masked_fill(padding_mask[..., None], 0.0)  # 0 * NaN of a padded position would be NaN
    # Mixed precision would hand on half of the digits.
    with torch.autocast(x.device.type, enabled=False):
        kept = weights.to(x.dtype) @ clean
        carried = (weights @ scores.masked_fill(padding_mask, 0.0)[..., None]).squeeze(-1)
    sources = torch.arange(length, device=x.device).expand_as(weights)
    return TopK(kept, empty, carried, sources, weights.to(x.dtype))

"""Hard top-k: the best vectors as they are."""

from torch import Tensor

from pyramidions.nn.functional.topk.core import TopK, best_positions, in_document_order, prepare


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

"""Top-k selection: from (B, L, D) to (B, K, D), guided by scores.

Every operator takes ``(x, scores, k, *, padding_mask)`` and options of its own, and returns a `TopK`.
"""

from pyramidions.nn.functional.topk.halving import successive_halving_topk
from pyramidions.nn.functional.topk.iterative import gumbel_topk, iterative_topk
from pyramidions.nn.functional.topk.selection import TopK, hard_topk

__all__ = ["TopK", "gumbel_topk", "hard_topk", "iterative_topk", "successive_halving_topk"]

"""The scorer that reads the query."""

import torch
from torch import Tensor, nn

from pyramidions.nn.functional.precision import full_precision, project
from pyramidions.nn.marks import Marks
from pyramidions.nn.scorer.core import SCORER, LogitScorer, score_of
from pyramidions.nn.sequence import PoolingContext, Sequence

#: The score of the query's own vectors, above all others.
KEPT = 2.0


@SCORER.register("query")
class QueryScorer(LogitScorer):
    """How useful a vector is in general, and how well it matches what is asked.

    The logit of a vector x is linear(x) plus the largest x W q / sqrt(D) over the query's vectors q: late interaction
    by the maximum (Khattab and Zaharia 2020, section 3.3), with a bilinear form that starts as W = I / sqrt(D). So
    vectors that resemble those of the query have the advantage from the beginning. The score is sigmoid(logit) + 1e-5.

    The query's own vectors score above all others, so that top-k poolings hand them on and the next one can read them.
    Documents are cut, queries are not. To leave room for the document, only as many are preferred as make up half of
    what is handed on, from the query's beginning; the rest of a longer query is scored like the document.

    Without a query, the score is that of the linear part.

    Args:
        embed_dim: D.
        k: vectors that the pooling hands on; None for no limit to the query's.
    """

    reads_query = True

    def __init__(self, embed_dim: int, k: int | None = None) -> None:
        super().__init__()
        self.k = k
        self.linear = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.bilinear = nn.Linear(embed_dim, embed_dim, bias=False)
        nn.init.eye_(self.bilinear.weight)
        with torch.no_grad():
            self.bilinear.weight *= embed_dim**-0.5

    def hidden(self, x: Tensor) -> Tensor:
        return x

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        with torch.autocast(sequence.x.device.type, enabled=False):
            x, query = full_precision(sequence.x), sequence.query
            if query is None:
                # Data-parallel training waits for the gradient of every parameter.
                return score_of(self.logits(x) + 0.0 * self.bilinear.weight.sum().to(x.dtype))
            scores = score_of(self.logits(x) + self.relevance(x, query))
            return scores.masked_fill(self._preferred(query), KEPT)

    def relevance(self, x: Tensor, query: Marks) -> Tensor:
        """Return how well each vector matches the query's, 0 in a document without a query: (B, L, D) -> (B, L)."""
        # (B, L, D), (B, Q, D) -> (B, L, Q)
        alike = project(self.bilinear, x) @ query.take(x).transpose(1, 2) * x.size(-1) ** -0.5
        best = alike.masked_fill(query.absent[:, None, :], -torch.inf).amax(dim=-1)
        return best.masked_fill(query.absent.all(dim=1, keepdim=True), 0.0)

    def _preferred(self, query: Marks) -> Tensor:
        if self.k is None:
            return query.marked
        return query.marked & (query.marked.cumsum(dim=1) <= self.k // 2)

"""Scorers: the role, the registry of kinds, and the kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.functional.precision import full_precision, project
from pyramidions.nn.marks import Marks
from pyramidions.nn.options import Probability
from pyramidions.nn.sequence import PoolingContext, Sequence


class Scorer(nn.Module, ABC):
    """Rates how useful each representation is for what comes after."""

    #: whether it calls `PoolingContext.received`
    reads_attention: ClassVar[bool] = False
    #: whether it reads `Sequence.query`
    reads_query: ClassVar[bool] = False

    @abstractmethod
    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        """Return a finite score, in float32 at least, for each vector: (B, L).

        Scores of padding are ignored.
        """


def score_of(logits: Tensor) -> Tensor:
    """Return sigmoid(logits) + 1e-5 (Pietruszka et al. 2022, equation (1), as the authors' code computes it)."""
    return torch.sigmoid(logits) + 1e-5


class LogitScorer(Scorer):
    """Rates by the sigmoid of a last layer, linear, which a subclass makes."""

    #: D or more values -> the logit
    linear: nn.Linear

    @abstractmethod
    def hidden(self, x: Tensor) -> Tensor:
        """Return what the last layer reads of vectors in float32 at least: (..., D) -> (..., the layer's input)."""

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        # The tournament tells scores apart that half precision merges.
        with torch.autocast(sequence.x.device.type, enabled=False):
            return score_of(self.logits(sequence.x))

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits of vectors, in float32 at least: (..., D) -> (...)."""
        return project(self.linear, self.hidden(full_precision(x))).squeeze(-1)


SCORER: Registry[Scorer] = Registry("scorer")


@SCORER.register("linear")
class LinearScorer(LogitScorer):
    """sigmoid(linear(x)) + 1e-5, as the authors' code scores (Pietruszka et al. 2022, equation (1)).

    Args:
        layer_norm: normalize what is rated. Behind pre-norm layers, whose output grows in training, the sigmoid can
            saturate without it: then all scores are alike, and nothing is learned any more. Not in the paper.
    """

    def __init__(self, embed_dim: int, layer_norm: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim) if layer_norm else None
        self.linear = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def hidden(self, x: Tensor) -> Tensor:
        if self.norm is None:
            return x
        weight, bias = self.norm.weight.to(x.dtype), self.norm.bias.to(x.dtype)
        return F.layer_norm(x, self.norm.normalized_shape, weight, bias, self.norm.eps)


@SCORER.register("nonlinear")
class NonlinearScorer(LogitScorer):
    """Two layers with a tanh in between, in the form of RoBERTa's classification head (Liu et al. 2019).

    Args:
        dropout: probability of dropping a value before each layer while training.
    """

    def __init__(self, embed_dim: int, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.linear = nn.Linear(embed_dim, 1)
        for layer in (self.dense, self.linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def hidden(self, x: Tensor) -> Tensor:
        return self.dropout(project(self.dense, self.dropout(x)).tanh())


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


@SCORER.register("attention")
class AttentionScorer(Scorer):
    """How much attention a position received in the layer before (Goyal et al. 2020, section 3.2); no gradient."""

    reads_attention = True

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return context.received()


@SCORER.register("embedding")
class EmbeddingScorer(Scorer):
    """One coordinate of the representation itself, which the model learns to use (Pietruszka et al. 2022, table 4)."""

    def __init__(self, embed_dim: int, coordinate: int = 0) -> None:
        super().__init__()
        if not 0 <= coordinate < embed_dim:
            raise ValueError(f"`coordinate` must be at least 0 and below {embed_dim}, but is {coordinate}.")
        self.coordinate = coordinate

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return score_of(full_precision(sequence.x[..., self.coordinate]))


@SCORER.register("index")
class IndexScorer(Scorer):
    """1 at every stride-th position, 0 elsewhere: selection without a look at content."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        every = torch.arange(sequence.x.size(1), device=sequence.x.device) % self.stride == 0
        return every.float().expand(sequence.x.shape[:2])


@SCORER.register("random")
class RandomScorer(Scorer):
    """Uniform in [0, 1): drawn anew at each training step, fixed by position otherwise.

    Training draws from torch's generator of the device, as dropout does, so that a seed makes it reproducible.
    """

    _CHUNK = 1024  # positions per seed, so that a longer document begins with the scores of a shorter one

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        batch, length = sequence.padding_mask.shape
        if self.training:
            return torch.rand(batch, length, device=sequence.x.device)
        chunks = range(-(-length // self._CHUNK))
        seeded = (torch.Generator().manual_seed(self.seed + c) for c in chunks)
        fixed = [torch.rand(self._CHUNK, generator=generator, device="cpu") for generator in seeded]
        return torch.cat(fixed)[:length].to(sequence.x.device).expand(batch, length)

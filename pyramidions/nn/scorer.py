"""Scorers: how useful each representation is for what comes after."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.context import Context
from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.registry import Registry


class Scorer(nn.Module, ABC):
    """Rates representations."""

    #: whether the attention of the layer before is asked what each position received
    reads_attention: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Tensor:
        """Return a finite score, in float32 at least, for each vector of ``x``: (B, L, D) -> (B, L).

        ``padding_mask`` (B, L) is True at padding, whose scores mean nothing; ``context`` is what the layer before
        offers.
        """


SCORER: Registry[Scorer] = Registry("scorer")


@SCORER.register("linear")
class LinearScorer(Scorer):
    """sigmoid(linear(x)) + 1e-5, as the authors' code scores (Pietruszka et al. 2022, equation (1)).

    Args:
        embed_dim: D.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(embed_dim, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return _score(_project(self.linear, _at_least_float32(x)).squeeze(-1))


@SCORER.register("nonlinear")
class NonlinearScorer(Scorer):
    """Two layers with a tanh in between, in the form of RoBERTa's classification head (Liu et al. 2019).

    Args:
        embed_dim: D.
        dropout: probability of dropping a value before each layer while training.
    """

    def __init__(self, embed_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.linear = nn.Linear(embed_dim, 1)
        for layer in (self.dense, self.linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            hidden = _project(self.dense, self.dropout(_at_least_float32(x))).tanh()
            return _score(_project(self.linear, self.dropout(hidden)).squeeze(-1))


@SCORER.register("embedding")
class EmbeddingScorer(Scorer):
    """One coordinate of the representation itself, which the model learns to use (Pietruszka et al. 2022, table 4).

    Args:
        coordinate: which one.
    """

    def __init__(self, embed_dim: int, coordinate: int = 0) -> None:
        super().__init__()
        if not 0 <= coordinate < embed_dim:
            raise ValueError(f"`coordinate` must be at least 0 and below {embed_dim}, but is {coordinate}.")
        self.coordinate = coordinate

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Tensor:
        return _score(_at_least_float32(x[..., self.coordinate]))


@SCORER.register("attention")
class AttentionScorer(Scorer):
    """How much attention a position received in the layer before (Goyal et al. 2020, section 3.2); no gradient."""

    reads_attention = True

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Tensor:
        return context.received()


@SCORER.register("index")
class IndexScorer(Scorer):
    """1 at every stride-th position, 0 elsewhere: selection that looks at no content.

    Args:
        stride: the configured length over the configured k, whatever a batch's length.
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Tensor:
        every = torch.arange(x.size(1), device=x.device) % self.stride == 0
        return every.float().expand(x.shape[:2])


@SCORER.register("random")
class RandomScorer(Scorer):
    """Uniform in [0, 1): drawn anew at each training step, fixed by position otherwise.

    Training draws from torch's generator of the device, as dropout does, so that a seed makes it reproducible.

    Args:
        seed: of the scores by position.
    """

    _CHUNK = 1024  # positions a seed, so that a longer document begins with the scores of a shorter one

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, x: Tensor, padding_mask: Tensor, context: Context) -> Tensor:
        batch, length = padding_mask.shape
        if self.training:
            return torch.rand(batch, length, device=x.device)
        chunks = range(-(-length // self._CHUNK))
        fixed = [torch.rand(self._CHUNK, generator=torch.Generator().manual_seed(self.seed + c)) for c in chunks]
        return torch.cat(fixed)[:length].to(x.device).expand(batch, length)


def _at_least_float32(x: Tensor) -> Tensor:
    """In float32 under mixed precision too: the tournament tells scores apart that half precision merges."""
    return x if x.dtype == torch.float64 else x.float()


def _project(layer: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))


def _score(logits: Tensor) -> Tensor:
    return torch.sigmoid(logits) + 1e-5

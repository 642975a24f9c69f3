"""The role of a scorer, and the registry of kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.registry import Registry
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


def at_least_float32(x: Tensor) -> Tensor:
    """Convert half precision to float32: the tournament tells scores apart that half precision merges."""
    return x if x.dtype == torch.float64 else x.float()


def project(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply ``layer`` in the precision of ``x``."""
    return F.linear(x, layer.weight.to(x.dtype), None if layer.bias is None else layer.bias.to(x.dtype))


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
        with torch.autocast(sequence.x.device.type, enabled=False):
            return score_of(self.logits(sequence.x))

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits of vectors, in float32 at least: (..., D) -> (...)."""
        return project(self.linear, self.hidden(at_least_float32(x))).squeeze(-1)


SCORER: Registry[Scorer] = Registry("scorer")

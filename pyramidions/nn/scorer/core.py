"""The role of a scorer, and the registry of kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.precision import full_precision, project
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

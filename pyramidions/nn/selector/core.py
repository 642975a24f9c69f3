"""The role of what selects sentences, the registry of kinds, and the kind that rates each on its own."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.precision import full_precision

#: Chooses the next unit of each document: from the log-probabilities (B, U + 1) and what is chosen (B, U + 1), of which
#: the last stands for the end, to numbers (B,).
Pick: TypeAlias = Callable[[Tensor, Tensor], Tensor]


class Steps(NamedTuple):
    """What was selected from each document, step by step; after the end, everything is 0.

    Attributes:
        chosen: (B, S), the number of a unit; U is the end.
        log_probs: (B, S, U + 1), of all units and of the end; -inf where a unit cannot be chosen.
        values: (B, S), the rewards that the critic expects from each step on.
        real: (B, S), True up to the end.
    """

    chosen: Tensor
    log_probs: Tensor
    values: Tensor
    real: Tensor


class Selector(nn.Module, ABC):
    """Selects units of a document by their vectors."""

    #: whether it selects them one by one, in `steps`
    points: ClassVar[bool] = False

    def steps(self, x: Tensor, known: Tensor, pick: Pick) -> Steps:
        """Choose units as ``pick`` does until all documents are done; raise ValueError if it rates all at once."""
        raise ValueError(f"{type(self).__name__} rates all units at once.")

    @abstractmethod
    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        """Return scores, the higher the sooner; -inf for what is not selected: (B, U, D) -> (B, U), full precision.

        Units must be ``known`` (B, U): there is a vector for them, and they may be selected.
        """


SELECTOR: Registry[Selector] = Registry("selector")


@SELECTOR.register("independent")
class IndependentSelector(Selector):
    """Rates each unit by a linear layer on its vector (Liu and Lapata 2019, section 3.1).

    Args:
        embed_dim: D.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        made = nn.Linear(embed_dim, 1)
        # By the names that checkpoints have.
        self.weight, self.bias = made.weight, made.bias

    def forward(self, x: Tensor, known: Tensor) -> Tensor:
        weight: Tensor = self.weight
        bias: Tensor = self.bias
        if not (torch.is_autocast_enabled(x.device.type) or self.training):
            # Half precision would give many sentences the same score.
            x = full_precision(x)
            weight, bias = weight.to(x.dtype), bias.to(x.dtype)
        return F.linear(x, weight, bias).squeeze(-1).masked_fill(~known, -torch.inf)

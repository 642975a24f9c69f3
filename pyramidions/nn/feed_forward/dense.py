"""Feed-forward parts: the role, the registry of kinds, and the dense ones."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pyramidions.base.arguments import OneOf, Range
from pyramidions.base.registry import Registry
from pyramidions.nn.functional.dropout import drop, relu_drop
from pyramidions.nn.options import Probability, Role
from pyramidions.nn.sublayer import LayerContext, SublayerFunction


class FeedForward(SublayerFunction):
    """Transforms each position on its own."""

    confined_to = 1
    #: options that fit small widths
    narrow: ClassVar[Mapping[str, int]] = {}

    @property
    def steps_alike(self) -> bool:
        return True

    @abstractmethod
    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """(B, L, D) -> (B, L, D)."""


FEED_FORWARD: Registry[FeedForward] = Registry("feed-forward")


def _gelu_drop(x: Tensor, probability: float) -> Tensor:
    return drop(F.gelu(x), probability)


def _gelu_tanh_drop(x: Tensor, probability: float) -> Tensor:
    return drop(F.gelu(x, approximate="tanh"), probability)


#: by name, each with the dropout that follows it
ACTIVATIONS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "relu": relu_drop,
    "gelu": _gelu_drop,
    "gelu_tanh": _gelu_tanh_drop,
}


@FEED_FORWARD.register("dense")
class DenseFeedForward(FeedForward):
    """Two linear layers (Vaswani et al. 2017, section 3.3).

    Args:
        activation: "relu", "gelu", or "gelu_tanh", which approximates it (BigBird).
        chunk_size: positions, of all documents of a batch together, that are computed at a time (Kitaev et al. 2020,
            section 3); what lies between the two layers is computed again in the backward pass, chunk by chunk. 0 for
            all positions at once.
        bias: each layer adds a learned vector, 0 at first.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        activation: Annotated[str, OneOf(tuple(ACTIVATIONS))] = "relu",
        activation_dropout: Probability = 0.0,
        chunk_size: Annotated[int, Range(0), Role.LENGTH] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.chunk_size = chunk_size
        self.activate = ACTIVATIONS[activation]
        self.activation_dropout = activation_dropout
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim, bias)
        self.fc2 = nn.Linear(ffn_embed_dim, embed_dim, bias)
        for layer in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        if not self.chunk_size:
            return self._transform(x)
        # (B, L, D) -> chunks of (C, D)
        chunks = x.flatten(0, 1).split(self.chunk_size)
        if torch.is_grad_enabled():
            done = [checkpoint(self._transform, chunk, use_reentrant=False) for chunk in chunks]
        else:
            done = [self._transform(chunk) for chunk in chunks]
        return torch.cat(done).view(*x.shape[:-1], -1)

    def _transform(self, x: Tensor) -> Tensor:
        return self.fc2(self.activate(self.fc1(x), self.activation_dropout if self.training else 0.0))


@FEED_FORWARD.register("gated")
class GatedFeedForward(FeedForward):
    """A linear layer times another one that is activated, then a third: fc2(activate(gate(x)) * fc1(x)).

    Shazeer, 2020, "GLU Variants Improve Transformer", section 2; none of the three has a bias.

    Args:
        activation: "relu", "gelu", or "gelu_tanh", which approximates it (T5 1.1).
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        activation: Annotated[str, OneOf(tuple(ACTIVATIONS))] = "gelu_tanh",
        activation_dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        self.activate = ACTIVATIONS[activation]
        self.activation_dropout = activation_dropout
        self.gate = nn.Linear(embed_dim, ffn_embed_dim, bias=False)
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim, bias=False)
        self.fc2 = nn.Linear(ffn_embed_dim, embed_dim, bias=False)
        for layer in (self.gate, self.fc1, self.fc2):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        gated = self.activate(self.gate(x), 0.0) * self.fc1(x)
        return self.fc2(drop(gated, self.activation_dropout) if self.training else gated)

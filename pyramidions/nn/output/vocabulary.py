"""From features to the vocabulary: the role, the registry of kinds, and those that copy nothing."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.multiplicative import Multiplicative
from pyramidions.nn.sublayer import Memory


class Output(nn.Module, ABC):
    """Scores the vocabulary."""

    #: whether it points to the first memory, as `PointerOutput` does
    points: ClassVar[bool] = False

    def prepare(self, memories: tuple[Memory, ...], embedding: Tensor) -> Any:
        """Return what it reads of the decoder's memories, once for all steps; None if it reads none.

        The ``embedding`` (V, D) is that of the decoder's tokens.
        """
        return None

    @abstractmethod
    def forward(self, features: Tensor, embedding: Tensor, prepared: Any = None) -> Tensor:
        """Return logits: (B, T, D), the decoder's token embeddings (V, D), and what `prepare` returned -> (B, T, V)."""


OUTPUT: Registry[Output] = Registry("output")


@OUTPUT.register("tied")
class TiedOutput(Output):
    """The token embeddings themselves (Press and Wolf 2017)."""

    def forward(self, features: Tensor, embedding: Tensor, prepared: None = None) -> Tensor:
        return F.linear(features, embedding)


@OUTPUT.register("untied")
class UntiedOutput(Output):
    """A linear layer (Vaswani et al. 2017, section 3.4, without sharing its weights).

    Args:
        bias: add a learned number to each logit, 0 at first.
    """

    def __init__(self, embed_dim: int, vocab_size: int, bias: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(embed_dim, vocab_size, bias)
        if bias:
            nn.init.zeros_(self.linear.bias)
        nn.init.normal_(self.linear.weight, std=embed_dim**-0.5)

    def forward(self, features: Tensor, embedding: Tensor, prepared: None = None) -> Tensor:
        return self.linear(features)


@OUTPUT.register("multiplicative")
class MultiplicativeOutput(Output):
    """A multiplicative layer without a bias: the sparse loss (Jaszczur et al. 2021, section 6.2).

    Token v belongs to module v // ceil(V / S).
    """

    def __init__(self, embed_dim: int, vocab_size: int, modules: int = 4) -> None:
        super().__init__()
        if not 1 <= modules <= vocab_size:
            raise ValueError(
                f"`modules` of the output must be from 1 to `vocab_size` ({vocab_size}), but is {modules}."
            )
        self.vocab_size = vocab_size
        self.multiplicative = Multiplicative(embed_dim, modules, -(-vocab_size // modules) * modules, bias=False)

    def forward(self, features: Tensor, embedding: Tensor, prepared: None = None) -> Tensor:
        logits: Tensor = self.multiplicative(features)
        return logits[..., : self.vocab_size]

"""The role of an output layer, and the registry of kinds."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from pyramidions.base.registry import Registry


class Output(nn.Module, ABC):
    """Scores the vocabulary."""

    @abstractmethod
    def forward(self, features: Tensor, embedding: Tensor) -> Tensor:
        """Return logits.

        Args:
            features: (B, T, D), the output of the last layer.
            embedding: (V, D), the decoder's token embeddings.

        Returns:
            (B, T, V).
        """


OUTPUT: Registry[Output] = Registry("output")

"""The role of an output layer, and the registry of kinds."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from pyramidions.nn.registry import Registry


class Output(nn.Module, ABC):
    """Scores the vocabulary."""

    @abstractmethod
    def forward(self, features: Tensor, embedding: Tensor) -> Tensor:
        """Return logits.

        Args:
            features: (B, T, D), what the last layer wrote.
            embedding: (V, D), of the tokens that the decoder reads.

        Returns:
            (B, T, V).
        """


OUTPUT: Registry[Output] = Registry("output")

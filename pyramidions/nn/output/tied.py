"""The output layer that shares the embedding."""

import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.output.core import OUTPUT, Output


@OUTPUT.register("tied")
class TiedOutput(Output):
    """The token embeddings themselves (Press and Wolf 2017)."""

    def forward(self, features: Tensor, embedding: Tensor) -> Tensor:
        return F.linear(features, embedding)

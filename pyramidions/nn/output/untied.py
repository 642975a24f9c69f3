"""The output layer with weights of its own."""

from torch import Tensor, nn

from pyramidions.nn.output.core import OUTPUT, Output


@OUTPUT.register("untied")
class UntiedOutput(Output):
    """A linear layer (Vaswani et al. 2017, section 3.4, without sharing its weights).

    Args:
        embed_dim: D.
        vocab_size: V.
        bias: add a learned number to each logit, 0 at first.
    """

    def __init__(self, embed_dim: int, vocab_size: int, bias: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(embed_dim, vocab_size, bias)
        if bias:
            nn.init.zeros_(self.linear.bias)
        nn.init.normal_(self.linear.weight, std=embed_dim**-0.5)

    def forward(self, features: Tensor, embedding: Tensor) -> Tensor:
        return self.linear(features)

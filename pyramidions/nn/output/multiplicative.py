"""The output layer of few modules."""

from torch import Tensor

from pyramidions.nn.multiplicative import Multiplicative, check_modules
from pyramidions.nn.output.core import OUTPUT, Output


@OUTPUT.register("multiplicative")
class MultiplicativeOutput(Output):
    """A multiplicative layer without a bias: the sparse loss (Jaszczur et al. 2021, section 6.2).

    Token v belongs to module v // (V / S).

    Args:
        embed_dim: D.
        vocab_size: V, divisible by ``modules``.
        modules: S.

    Raises:
        ValueError: fewer than 1 module, or ``vocab_size`` is not divisible by them.
    """

    def __init__(self, embed_dim: int, vocab_size: int, modules: int = 4) -> None:
        super().__init__()
        check_modules("vocab_size", vocab_size, modules)
        self.multiplicative = Multiplicative(embed_dim, modules, vocab_size, bias=False)

    def forward(self, features: Tensor, embedding: Tensor) -> Tensor:
        logits: Tensor = self.multiplicative(features)
        return logits

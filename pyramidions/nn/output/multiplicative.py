"""The output layer of few modules."""

from torch import Tensor

from pyramidions.nn.multiplicative import Multiplicative
from pyramidions.nn.output.core import OUTPUT, Output


@OUTPUT.register("multiplicative")
class MultiplicativeOutput(Output):
    """A multiplicative layer without a bias: the sparse loss (Jaszczur et al. 2021, section 6.2).

    Token v belongs to module v // ceil(V / S).

    Args:
        embed_dim: D.
        vocab_size: V; the last module has fewer tokens where it is not divisible by ``modules``.
        modules: S.

    Raises:
        ValueError: fewer than 1 module, or more than tokens.
    """

    def __init__(self, embed_dim: int, vocab_size: int, modules: int = 4) -> None:
        super().__init__()
        if not 1 <= modules <= vocab_size:
            raise ValueError(
                f"`modules` of the output must be from 1 to `vocab_size` ({vocab_size}), but is {modules}."
            )
        self.vocab_size = vocab_size
        self.multiplicative = Multiplicative(embed_dim, modules, -(-vocab_size // modules) * modules, bias=False)

    def forward(self, features: Tensor, embedding: Tensor) -> Tensor:
        logits: Tensor = self.multiplicative(features)
        return logits[..., : self.vocab_size]

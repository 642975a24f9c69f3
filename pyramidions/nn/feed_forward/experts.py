"""The feed-forward part of experts."""

from typing import Annotated, ClassVar

from torch import Tensor, nn

from pyramidions.base.arguments import Range, Share
from pyramidions.nn.feed_forward.chosen_units import ChosenUnits
from pyramidions.nn.feed_forward.core import FEED_FORWARD, FeedForward
from pyramidions.nn.options import Divisor, Probability
from pyramidions.nn.sublayer import LayerContext


@FEED_FORWARD.register("experts")
class ExpertsFeedForward(FeedForward):
    """Consecutive hidden units, all of one expert, chosen by a linear layer (Jaszczur et al. 2021, section 3.1).

    The paper compares its sparse part with experts but does not describe them. They are read as the sparse part with a
    single block, whose choices are the experts: the mask of an expert, one number, multiplies all its units; the
    temperature is that of the noise; the softmax is over all experts. The controller has full rank, for it is small.
    There is no loss that balances experts, and none of them is ever full. A position reads as many rows of the weights
    as in the sparse part with blocks of as many units as there are experts.

    Args:
        embed_dim: D.
        ffn_embed_dim: F, hidden units of all experts.
        experts: how many there are.
        temperature: factor of the Gumbel noise by which training chooses.
        quantized: share of calls in training that choose; the others weight all experts.
        activation_dropout: probability of dropping a value after ReLU while training.

    Raises:
        ValueError: a number of experts that does not divide F.
    """

    narrow: ClassVar = {"experts": 4}

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        experts: Divisor = 64,
        temperature: Annotated[float, Range(0)] = 0.7,
        quantized: Share = 0.5,
        activation_dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        if ffn_embed_dim % experts:
            raise ValueError(f"`ffn_embed_dim` ({ffn_embed_dim}) must be divisible by `experts` ({experts}).")
        controller = nn.Linear(embed_dim, experts)
        nn.init.xavier_uniform_(controller.weight)
        nn.init.zeros_(controller.bias)
        self.chosen = ChosenUnits(
            controller,
            embed_dim,
            ffn_embed_dim,
            experts,
            ffn_embed_dim // experts,
            temperature=temperature,
            quantized=quantized,
            dropout=activation_dropout,
        )

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return self.chosen(x.flatten(0, 1)).view(x.shape)

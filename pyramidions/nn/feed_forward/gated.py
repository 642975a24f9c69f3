"""A feed-forward part with a gate, as in T5 1.1."""

from typing import Annotated

from torch import Tensor, nn

from pyramidions.base.arguments import OneOf
from pyramidions.nn.feed_forward.core import ACTIVATIONS, FEED_FORWARD, FeedForward
from pyramidions.nn.functional.dropout import drop
from pyramidions.nn.options import Probability
from pyramidions.nn.sublayer import LayerContext


@FEED_FORWARD.register("gated")
class GatedFeedForward(FeedForward):
    """A linear layer times another one that is activated, then a third: fc2(activate(gate(x)) * fc1(x)).

    Shazeer, 2020, "GLU Variants Improve Transformer", section 2; none of the three has a bias.

    Args:
        embed_dim: D.
        ffn_embed_dim: width between the layers.
        activation: "relu", "gelu", or "gelu_tanh", which approximates it (T5 1.1).
        activation_dropout: probability of dropping a value of the product while training.
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

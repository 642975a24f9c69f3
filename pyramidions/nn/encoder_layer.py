"""One layer of an encoder."""

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import MultiheadAttention
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.residual import ResidualConnection


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward part.

    Args:
        attention: self-attention.
        feed_forward: what follows it.
        around_attention: its residual connection.
        around_feed_forward: likewise.
    """

    def __init__(
        self,
        attention: MultiheadAttention,
        feed_forward: FeedForward,
        around_attention: ResidualConnection,
        around_feed_forward: ResidualConnection,
    ) -> None:
        super().__init__()
        self.self_attention = attention
        self.feed_forward = feed_forward
        self.around_attention = around_attention
        self.around_feed_forward = around_feed_forward

    def forward(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        """(B, L, D), (B, L) -> (B, L, D)."""
        x = self.around_attention(x, lambda y: self.self_attention(y, padding_mask))
        return self.around_feed_forward(x, self.feed_forward)

    @torch.no_grad()
    def received(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Return how much attention each position of the layer's input ``x`` (B, L, D) receives in it: (B, L)."""
        return self.self_attention.received(self.around_attention.entering(x), padding_mask)

"""Encoder and decoder as one model."""

from torch import Tensor, nn

from pyramidions.nn.decoder import Decoder
from pyramidions.nn.encoder import Encoder


class Transformer(nn.Module):
    """A sequence-to-sequence Transformer (Vaswani et al. 2017) with pooling in its encoder."""

    def __init__(self, encoder: Encoder, decoder: Decoder, padding_idx: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.padding_idx = padding_idx

    def forward(self, source: Tensor, target_prefix: Tensor, marked: Tensor | None = None) -> Tensor:
        """Return next-token logits: (B, L) and (B, T), padded on the right -> (B, T, V); ``marked`` as in `Encoder`."""
        encoded = self.encoder(source, source.eq(self.padding_idx), marked=marked)
        return self.decoder(target_prefix, encoded.memories)

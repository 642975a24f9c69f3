"""An encoder that rates the units of a text: sentences, turns, or sections."""

import torch
from torch import Tensor, nn

from pyramidions.nn.encoder import Encoder


class SentenceRanker(nn.Module):
    """Rates each unit of a document by the vector at its start (Liu and Lapata 2019, section 3.1).

    Args:
        encoder: reads the document; it knows the marker, and hands on vectors with their positions.
        output: from a vector to its score, D -> 1.
        padding_idx: the token that is padding.

    Raises:
        ValueError: the encoder knows no marker.
    """

    def __init__(self, encoder: Encoder, output: nn.Linear, padding_idx: int) -> None:
        super().__init__()
        if encoder.marker_idx is None:
            raise ValueError("A model that rates sentences needs a vocabulary with a sentence marker.")
        self.encoder = encoder
        self.output = output
        self.padding_idx = padding_idx

    def forward(self, source: Tensor, lengths: list[int] | None = None) -> Tensor:
        """Rate the units of a batch.

        Args:
            source: (B, L), token ids padded on the right. A unit starts at position 0 and at each marker.
            lengths: number of real tokens of each document, as in `Encoder.forward`.

        Returns:
            (B, U), logits; U is the largest number of units of a document. They are -inf where a document has no such
            unit, and where no pooling handed on the vector at its start.

        Raises:
            ValueError: the encoder's output does not say where its vectors stand.
        """
        padding_mask = source.eq(self.padding_idx)
        encoded = self.encoder(source, padding_mask, lengths)
        starts = self.encoder.starts(source)
        if starts is None or encoded.position is None or encoded.marked is None:
            raise ValueError("A model that rates sentences needs poolings that tell what their vectors are made of.")
        # (B, K, D) -> (B, K)
        scores = self.output(encoded.memory).squeeze(-1)
        scores = scores.masked_fill(~encoded.marked | encoded.padding_mask, -torch.inf)
        # The unit that each token belongs to, then each vector: (B, L) -> (B, K)
        units = (starts & ~padding_mask).cumsum(dim=1) - 1
        most = int(units.max()) + 1
        units = units.gather(1, encoded.position).clamp(min=0)
        # (B, K) -> (B, U); two vectors may stand at one start.
        unrated = scores.new_full((len(source), max(1, most)), -torch.inf)
        return unrated.scatter_reduce(1, units, scores, "amax")

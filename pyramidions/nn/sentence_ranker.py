"""An encoder that rates the units of a text: sentences, turns, or sections."""

import torch
from torch import Tensor, nn

from pyramidions.nn.encoder import Encoder
from pyramidions.nn.scorer.core import at_least_float32, project


class SentenceRanker(nn.Module):
    """Rates each unit of a document by its first vector (Liu and Lapata 2019, section 3.1).

    That is the vector at its start, unless a pooling handed on later ones alone.

    Args:
        encoder: reads the document; it knows the marker, and its poolings have provenance.
        output: from a vector to its score, D -> 1.
        padding_idx: the token that is padding.

    Raises:
        ValueError: the encoder knows no marker.
    """

    def __init__(self, encoder: Encoder, output: nn.Linear, padding_idx: int) -> None:
        super().__init__()
        if encoder.structure_of.marker is None:
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
            unit, or a pooling handed on no vector of it.

        Raises:
            ValueError: the encoder's output does not say which units its vectors stand in.
        """
        padding_mask = source.eq(self.padding_idx)
        encoded = self.encoder(source, padding_mask, lengths)
        units, unit = self.encoder.structure_of.units(source, padding_mask), encoded.sequence.unit
        if units is None or unit is None:
            raise ValueError("A model that rates sentences needs poolings that tell what their vectors are made of.")
        # (B, K, D) -> (B, K)
        scores = self._rated(encoded.sequence.x).masked_fill(~encoded.sequence.leads_unit, -torch.inf)
        # (B, K) -> (B, U); a pooling may have torn a unit apart.
        unrated = scores.new_full((len(source), max(1, int(units.max()) + 1)), -torch.inf)
        return unrated.scatter_reduce(1, unit.clamp(min=0), scores, "amax")

    def _rated(self, x: Tensor) -> Tensor:
        if torch.is_autocast_enabled(x.device.type) or self.training:
            return self.output(x).squeeze(-1)
        # Half precision would give many sentences the same score.
        return project(self.output, at_least_float32(x)).squeeze(-1)

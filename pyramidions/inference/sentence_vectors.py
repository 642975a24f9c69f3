"""Sentences as vectors of a trained model's encoder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pyramidions.base.arguments import Count, checked
from pyramidions.base.device import Device, found_device
from pyramidions.files.parallel import chunks
from pyramidions.inference.precision import FLOAT32, PrecisionName, found_precision, in_precision
from pyramidions.pretrained.saved_model import SavedModel, load_model
from pyramidions.text.tokenizer import PAD


class EncoderVectors:
    """The mean of what the encoder of a summarizer hands on, of each sentence read by itself.

    Sentences of like length share a batch.
    """

    @checked
    def __init__(
        self,
        model: SavedModel,
        device: Device | None = None,
        batch_size: Count = 64,
        precision: PrecisionName = FLOAT32,
    ) -> None:
        self._device = found_device(device)
        self.precision = found_precision(precision, self._device, model.config.embed_dim)
        self._encoder = in_precision(model.transformer.encoder, self.precision).to(self._device)
        self._tokenizer = model.tokenizer
        self._most = model.tokenizer.room(model.max_source_positions, "max_source_positions")
        self._batch_size = batch_size

    @classmethod
    @checked
    def from_pretrained(
        cls, path: str | Path, device: Device | None = None, precision: PrecisionName = FLOAT32
    ) -> "EncoderVectors":
        """Read a checkpoint, a folder of checkpoints (the best is taken), or an exported model."""
        found = found_device(device)
        found_precision(precision, found)
        return cls(load_model(path), found, precision=precision)

    @checked
    @torch.inference_mode()
    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """Return a row of length 1 for each sentence: (sentences, D); longer sentences are truncated."""
        ids = [torch.tensor(self._tokenizer.framed(self._tokenizer.encode(each)[: self._most])) for each in sentences]
        longest_first = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
        found: dict[int, Tensor] = {}
        for batch in chunks(longest_first, self._batch_size):
            tokens = pad_sequence([ids[index] for index in batch], batch_first=True, padding_value=PAD)
            found.update(zip(batch, self._means(tokens.to(self._device)).cpu(), strict=True))
        return torch.stack([found[index] for index in range(len(ids))]).double().numpy()

    def _means(self, tokens: Tensor) -> Tensor:
        """Return (B, D) for (B, L)."""
        encoded = self._encoder(tokens, tokens.eq(PAD))
        real = (~encoded.sequence.padding_mask).unsqueeze(-1)
        return torch.nn.functional.normalize((encoded.sequence.x.float() * real).sum(dim=1), dim=-1)

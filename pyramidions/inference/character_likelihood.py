"""How probable a language model of characters finds a text after another one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from pyramidions.inference.saved_model import SavedLanguageModel, load_language_model, weights_hash
from pyramidions.text.tokenizer import EOS, PAD

_CHARACTERS = 2**15  # of a batch, padding included
_IGNORED = -100  # a label that has no loss


class CharacterLikelihood:
    """Gives the mean log-likelihood of a text's characters, in nats, where it follows another text.

    Texts are cleaned as `pyramidions prepare --characters` does. Of what is longer than the window of training, the
    beginning is left out. A text without a letter of the alphabet has the likelihood 0.

    Args:
        model: on the device where it computes.
    """

    def __init__(self, model: SavedLanguageModel) -> None:
        self._model = model

    @classmethod
    def from_pretrained(cls, path: str | Path) -> "CharacterLikelihood":
        """Load a model onto the CPU; errors as in `load_language_model`."""
        return cls(load_language_model(path))

    @property
    def name(self) -> str:
        """Tells the model apart, by a hash of its weights."""
        found = weights_hash(self._model.network, f"{self._model.config} {self._model.settings()}".encode())
        return f"characters sha256:{found[:10]}"

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the likelihood of the second text of each pair, after the first: (pairs,)."""
        clean = self._model.alphabet.clean
        texts = [tuple(clean(text).strip(" \n") for text in pair) for pair in pairs]
        encoded = [self._encoded(first, second) for first, second in texts]
        values = np.zeros(len(pairs))
        order = sorted(range(len(pairs)), key=lambda index: -len(encoded[index][0]))
        while order:
            number = max(1, _CHARACTERS // len(encoded[order[0]][0]))
            batch, order = order[:number], order[number:]
            values[batch] = self._values([encoded[index] for index in batch])
        return values

    def _encoded(self, first: str, second: str) -> tuple[np.ndarray, int]:
        """Return ids, and how many of them are of the second text."""
        text = f"{first} {second}" if first and second else first + second
        ids = np.concatenate([[EOS], self._model.alphabet.encode(text)]).astype(np.int64)
        kept = ids[-self._model.window :]
        return kept, min(len(second), len(kept) - 1)

    @torch.inference_mode()
    def _values(self, encoded: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
        network = self._model.network
        longest = max(len(ids) for ids, _ in encoded)
        tokens, labels = torch.full((len(encoded), longest), PAD), torch.full((len(encoded), longest), _IGNORED)
        for row, label, (ids, counted) in zip(tokens, labels, encoded, strict=True):
            row[: len(ids)] = torch.from_numpy(ids)
            label[len(ids) - counted : len(ids)] = row[len(ids) - counted : len(ids)]
        device = next(network.parameters()).device
        # (B, T - 1, V)
        logits = network(tokens[:, :-1].to(device)).float().cpu()
        losses = cross_entropy(logits.transpose(1, 2), labels[:, 1:], ignore_index=_IGNORED, reduction="none")
        found: np.ndarray = (-losses.sum(dim=1) / (labels != _IGNORED).sum(dim=1).clamp(min=1)).double().numpy()
        return found

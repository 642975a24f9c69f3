"""Vectors of the tokens of texts, for BERTScore and MoverScore."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pyramidions.scoring.encoders.batches import batches_by_length
from pyramidions.scoring.encoders.depth import depth
from pyramidions.scoring.encoders.heads import VECTORS
from pyramidions.scoring.encoders.loading import Loaded, library_version, load
from pyramidions.text.normalization import NORMALISATION, normalize


class Tokens(NamedTuple):
    """The tokens of a text, those included that the tokenizer puts around it.

    Attributes:
        ids: (tokens,), whole numbers.
        pieces: what stands in the text.
        is_own: (tokens,), bool: the token is of the text, and not added by the tokenizer.
        continues: (tokens,), bool: the token goes on with the word of the one before.
        delimits: (tokens,), bool: it is the model's CLS or SEP.
        is_cut: the text is longer than the model, and its end was dropped.
    """

    ids: np.ndarray
    pieces: list[str]
    is_own: np.ndarray
    continues: np.ndarray
    delimits: np.ndarray
    is_cut: bool

    @property
    def is_empty(self) -> bool:
        """Whether the text has no token of its own."""
        return not self.is_own.any()


class Embedded(NamedTuple):
    """The tokens of a text with their vectors, (tokens, embed_dim)."""

    tokens: Tokens
    vectors: Tensor


class Embedder:
    """Makes vectors of tokens by one layer of an encoder.

    Texts are normalised as for ROUGE: line breaks make no difference.

    Args:
        loaded: the model, which ends at this layer.
        layer: counted from 1.
    """

    def __init__(self, loaded: Loaded, layer: int) -> None:
        self.loaded = loaded
        self.layer = layer
        self.vocab_size: int = loaded.model.get_input_embeddings().num_embeddings
        self._delimiters = {loaded.tokenizer.cls_token_id, loaded.tokenizer.sep_token_id}

    @property
    def length(self) -> int | None:
        """Most tokens of a text; None for any number."""
        return self.loaded.length

    def signature(self) -> str:
        """Name the model and all that determines its vectors."""
        length = "any length" if self.length is None else f"at most {self.length} tokens"
        return (
            f"{self.loaded.name} | layer {self.layer} | {length} | {library_version()} | normalisation {NORMALISATION}"
        )

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut texts into tokens."""
        normalised = [normalize(text) for text in texts]
        if not normalised:
            return []
        encodings = self.loaded.tokenizer(normalised, **truncation(self.length)).encodings
        return [self._tokens(text, encoding) for text, encoding in zip(normalised, encodings, strict=True)]

    def _tokens(self, text: str, encoding: Any) -> Tokens:
        ids = np.array(encoding.ids, dtype=np.int64)
        words = [-1 if word is None else word for word in encoding.word_ids]
        return Tokens(
            ids,
            [text[start:end].strip() for start, end in encoding.offsets],
            ~np.array(encoding.special_tokens_mask, dtype=bool),
            np.array([n > 0 and word >= 0 and word == words[n - 1] for n, word in enumerate(words)], dtype=bool),
            np.array([index in self._delimiters for index in encoding.ids], dtype=bool),
            bool(encoding.overflowing),
        )

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """Return the tokens and vectors of texts, on the model's device."""
        tokens = self.tokens(texts)
        vectors: list[Tensor] = [torch.empty(0)] * len(tokens)
        for batch in batches_by_length([len(of_text.ids) for of_text in tokens]):
            # (texts, tokens), and True where there is a token
            ids = pad_sequence([torch.from_numpy(tokens[index].ids) for index in batch], batch_first=True)
            lengths = torch.tensor([len(tokens[index].ids) for index in batch])
            mask = torch.arange(ids.shape[1]) < lengths[:, None]
            device = self.loaded.device
            ids = ids.masked_fill(~mask, self.loaded.tokenizer.pad_token_id or 0)
            found = self.loaded.model(input_ids=ids.to(device), attention_mask=mask.long().to(device))[0]
            for index, of_text, length in zip(batch, found, lengths.tolist(), strict=True):
                vectors[index] = of_text[:length]
        return list(map(Embedded, tokens, vectors))


def truncation(length: int | None) -> dict[str, Any]:
    """Return how a tokenizer is to be called so that it cuts texts at a length, if there is one."""
    return {} if length is None else {"truncation": True, "max_length": length}


@lru_cache(maxsize=2)
def embedder(place: str | None, layer: int | None, device: str) -> Embedder:
    """Load an embedder; metrics with the same one share it.

    Args:
        place: of the model, as `load` takes it.
        layer: counted from 1; None for the last.
        device: as torch names it.

    Raises:
        UserError: as `load` does.
    """
    loaded = load(place, VECTORS, device, layer)
    return Embedder(loaded, depth(loaded.model.config))

"""Vectors of the tokens of texts, for BERTScore and MoverScore."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pyramidions.files.hub import hub_name
from pyramidions.scoring.encoders.loading import Head, Loaded, batches_by_length, depth, library_version, load
from pyramidions.text.normalization import NORMALISATION, normalize

# The layers whose vectors agree best with people's judgements, as the package bert-score 0.3.13 has them: by judgements
# of WMT16, the Turkish one by WMT18. The owners are those of today's hub.
_BEST = """
FacebookAI/roberta-base 10, FacebookAI/roberta-large 17, FacebookAI/roberta-large-mnli 19,
FacebookAI/xlm-roberta-base 9, FacebookAI/xlm-roberta-large 17, albert/albert-base-v2 9, albert/albert-large-v2 14,
allenai/led-base-16384 6, allenai/longformer-base-4096 7, allenai/longformer-large-4096 14,
allenai/scibert_scivocab_cased 9, allenai/scibert_scivocab_uncased 8, dbmdz/bert-base-turkish-cased 10,
distilbert/distilbert-base-multilingual-cased 5, distilbert/distilbert-base-uncased 5, distilbert/distilroberta-base 5,
facebook/bart-base 6, facebook/bart-large 10, facebook/bart-large-cnn 10, facebook/bart-large-mnli 11,
facebook/bart-large-xsum 9, facebook/mbart-large-50 12, facebook/mbart-large-cc25 12, google-bert/bert-base-chinese 8,
google-bert/bert-base-multilingual-cased 9, google-bert/bert-base-uncased 9, google-bert/bert-large-uncased 18,
google-t5/t5-base 11, google-t5/t5-large 23, google-t5/t5-small 6, google/bigbird-roberta-base 10,
google/bigbird-roberta-large 14, google/mt5-base 11, google/mt5-large 19, google/mt5-small 8, google/pegasus-large 8,
google/pegasus-xsum 11, microsoft/deberta-base 9, microsoft/deberta-large 16, microsoft/deberta-v3-base 9,
microsoft/deberta-v3-large 12, microsoft/deberta-v3-small 4, microsoft/deberta-xlarge-mnli 40,
microsoft/mdeberta-v3-base 10, xlnet/xlnet-base-cased 5, xlnet/xlnet-large-cased 7
"""

VECTORS = Head("embedding_model", "an encoder, such as BERT or the encoder of BART", "AutoModel")


class Tokens(NamedTuple):
    """The tokens of a text, those included that the tokenizer puts around it. Arrays are (tokens,)."""

    ids: np.ndarray
    pieces: list[str]  #: what stands in the text
    is_own: np.ndarray  #: the token is of the text, and not added by the tokenizer
    continues: np.ndarray  #: the token goes on with the word of the one before
    delimits: np.ndarray  #: it is the model's CLS or SEP
    is_cut: bool  #: the text is longer than the model, and its end was dropped

    @property
    def is_empty(self) -> bool:
        """Whether the text has no token of its own."""
        return not self.is_own.any()


class Embedded(NamedTuple):
    """The tokens of a text with their vectors, (tokens, embed_dim)."""

    tokens: Tokens
    vectors: Tensor


class Embedder:
    """Makes vectors of tokens by one layer, counted from 1, of an encoder, which ends there.

    Texts are normalised as for ROUGE: line breaks make no difference.
    """

    def __init__(self, loaded: Loaded, layer: int) -> None:
        self.loaded = loaded
        self.layer = layer
        #: Most tokens of a text; None for any number.
        self.length = loaded.length
        self.vocab_size: int = loaded.model.get_input_embeddings().num_embeddings
        self._delimiters = {loaded.tokenizer.cls_token_id, loaded.tokenizer.sep_token_id}

    def signature(self) -> str:
        """Name the model and all that determines its vectors."""
        about = f"{self.loaded.name} | layer {self.layer} | {self.loaded.reads}"
        return f"{about} | {library_version()} | normalisation {NORMALISATION}"

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        normalised = [normalize(text) for text in texts]
        encodings = self.loaded.tokenizer(normalised, **self.loaded.truncation).encodings
        return [self._tokens(text, encoding) for text, encoding in zip(normalised, encodings, strict=True)]

    def _tokens(self, text: str, encoding: Any) -> Tokens:
        words = [-1 if word is None else word for word in encoding.word_ids]
        return Tokens(
            np.array(encoding.ids, dtype=np.int64),
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


@lru_cache(maxsize=2)
def embedder(place: str | None, layer: int | None, device: str) -> Embedder:
    """Load an embedder, with its last layer if none is given; metrics with the same one share it."""
    loaded = load(place, VECTORS, device, layer)
    return Embedder(loaded, depth(loaded.model.config))


def best_layer(place: str) -> int | None:
    """Return the recommended layer of a model, by its name on the hub or a folder called so; None if none is known."""
    best = {name: int(layer) for name, layer in map(str.split, _BEST.split(","))}
    if hub := hub_name(place):
        return best.get(hub.name)
    return {name.partition("/")[2]: layer for name, layer in best.items()}.get(Path(place).resolve().name)

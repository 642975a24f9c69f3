"""Models that rate a text, given another: for BARTScore and BLEURT."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pyramidions.scoring.encoders.loading import Head, ModelInUse, batches_by_length
from pyramidions.scoring.metric import Rated

_IGNORED = -100  # a label that has no loss


class Rater(ModelInUse, ABC):
    """Rates the second text of pairs, given the first; texts that are too long are truncated."""

    def signature(self) -> str:
        return f"{super().signature()} | {self._loaded.reads}"

    @abstractmethod
    def rated(self, pairs: Sequence[tuple[str, str]]) -> Rated:
        """Return the values of pairs, in order."""


class LikelihoodRater(Rater):
    """Gives the mean log-likelihood of a text's tokens, in nats, given another text, by a sequence-to-sequence model.

    All tokens of the text count, those included that the tokenizer puts around it: an empty text has a likelihood only
    where the tokenizer marks its end. The model must say what its decoder reads first.
    """

    head = Head(
        "bartscore_model",
        "a sequence-to-sequence model, such as BART",
        "AutoModelForSeq2SeqLM",
        "ForConditionalGeneration",
    )

    def __init__(self, place: str | None, device: str = "cpu") -> None:
        super().__init__(place, device)
        loaded = self._loaded
        if not loaded.tokenizer("").input_ids:
            raise self._refuse("have a tokenizer that ends texts", "has none")
        if not hasattr(loaded.model, "prepare_decoder_input_ids_from_labels"):
            raise self._refuse("be of a kind such as BART, T5 or PEGASUS", f"is a {type(loaded.model).__name__}")
        # The decoder of LED reads less than its encoder.
        decoded = getattr(loaded.model.config, "max_decoder_position_embeddings", None)
        self._written = loaded if decoded is None else loaded._replace(length=min(decoded, loaded.length or decoded))

    @torch.inference_mode()
    def rated(self, pairs: Sequence[tuple[str, str]]) -> Rated:
        values = np.zeros(len(pairs))
        read = self._loaded.tokenizer([given for given, _ in pairs], **self._loaded.truncation).encodings
        written = self._loaded.tokenizer([text for _, text in pairs], **self._written.truncation).encodings
        both = list(zip(read, written, strict=True))
        for batch in batches_by_length([len(given.ids) + len(text.ids) for given, text in both]):
            values[batch] = self._likelihoods([both[index] for index in batch]).cpu().double().numpy()
        return Rated(values, sum(bool(given.overflowing or text.overflowing) for given, text in both))

    def _likelihoods(self, encoded: Sequence[tuple[Any, Any]]) -> Tensor:
        read, written = map(self._loaded.padded, zip(*encoded, strict=True))
        labels = written["input_ids"].masked_fill(written["attention_mask"] == 0, _IGNORED)
        model = self._loaded.model
        logits = model(
            input_ids=read["input_ids"],
            attention_mask=read["attention_mask"],
            decoder_input_ids=model.prepare_decoder_input_ids_from_labels(labels),
        ).logits
        # (texts, tokens, vocabulary) -> (texts * tokens,) -> (texts, tokens)
        losses = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=_IGNORED, reduction="none")
        return -losses.view_as(labels).sum(dim=1) / written["attention_mask"].sum(dim=1)


class RegressionRater(Rater):
    """Gives the one number of a regression model that reads both texts; the longer text of a long pair is truncated."""

    head = Head(
        "bleurt_model",
        "a model that rates pairs of texts by one label",
        "AutoModelForSequenceClassification",
        "ForSequenceClassification",
    )

    def __init__(self, place: str | None, device: str = "cpu") -> None:
        super().__init__(place, device)
        if (labels := self._loaded.model.config.num_labels) != 1:
            raise self._refuse("have one label", f"has {labels}")

    def rated(self, pairs: Sequence[tuple[str, str]]) -> Rated:
        encodings = self._loaded.tokenizer(*map(list, zip(*pairs, strict=True)), **self._loaded.truncation).encodings
        values = self._computed(encodings, lambda out: out.logits[:, 0].cpu().double().tolist())
        return Rated(np.array(values), sum(bool(encoding.overflowing) for encoding in encodings))

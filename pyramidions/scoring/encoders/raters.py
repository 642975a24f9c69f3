"""Models that rate a text, given another: for BARTScore and BLEURT."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pyramidions.base.errors import UserError
from pyramidions.scoring.encoders.loading import LIKELIHOOD, RATING, Loaded, ModelInUse, batches_by_length
from pyramidions.scoring.metric import Rated

_IGNORED = -100  # a label that has no loss


class Rater(ModelInUse, ABC):
    """Rates the second text of pairs, given the first; texts that are too long are truncated.

    Args:
        loaded: the model.
        place: where it is from, for errors.
    """

    def signature(self) -> str:
        """Name the model, and how much it reads."""
        length = self._loaded.length
        return f"{super().signature()} | {'any length' if length is None else f'at most {length} tokens'}"

    @torch.inference_mode()
    def rated(self, pairs: Sequence[tuple[str, str]]) -> Rated:
        """Return the values of pairs, in order."""
        values = np.zeros(len(pairs))
        if not pairs:
            return Rated(values, 0)
        encoded = self._encoded([given for given, _ in pairs], [text for _, text in pairs])
        for batch in batches_by_length([sum(len(part.ids) for part in parts) for parts in encoded]):
            values[batch] = self._values([encoded[index] for index in batch]).cpu().double().numpy()
        return Rated(values, sum(any(part.overflowing for part in parts) for parts in encoded))

    @abstractmethod
    def _encoded(self, given: list[str], texts: list[str]) -> list[tuple[Any, ...]]:
        """Return the encodings of each pair: one, or one of each text."""

    @abstractmethod
    def _values(self, encoded: Sequence[tuple[Any, ...]]) -> Tensor:
        """Return the values of a batch of encoded pairs: (pairs,)."""


class LikelihoodRater(Rater):
    """Gives the mean log-likelihood of a text's tokens, in nats, given another text, by a sequence-to-sequence model.

    All tokens of the text count, those included that the tokenizer puts around it.

    Args:
        loaded: the model.
        place: where it is from, for errors.

    Raises:
        UserError: the tokenizer does not mark where a text ends, so that an empty one has no likelihood; or the model
            does not say what its decoder reads first.
    """

    head = LIKELIHOOD

    def __init__(self, loaded: Loaded, place: str) -> None:
        super().__init__(loaded, place)
        if not loaded.tokenizer("").input_ids:
            raise UserError(f"`{LIKELIHOOD.option}` must have a tokenizer that ends texts, but {place} has none.")
        if not hasattr(loaded.model, "prepare_decoder_input_ids_from_labels"):
            kind = type(loaded.model).__name__
            raise UserError(
                f"`{LIKELIHOOD.option}` must be of a kind such as BART, T5 or PEGASUS, but {place} is {kind}."
            )
        # The decoder of LED reads less than its encoder.
        decoded = getattr(loaded.model.config, "max_decoder_position_embeddings", None)
        self._written = loaded if decoded is None else loaded._replace(length=min(decoded, loaded.length or decoded))

    def _encoded(self, given: list[str], texts: list[str]) -> list[tuple[Any, ...]]:
        read = self._loaded.tokenizer(given, **self._loaded.truncation).encodings
        written = self._loaded.tokenizer(texts, **self._written.truncation).encodings
        return list(zip(read, written, strict=True))

    def _values(self, encoded: Sequence[tuple[Any, ...]]) -> Tensor:
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
    """Gives the one number of a regression model that reads both texts; of a long pair, the longer text is truncated.

    Args:
        loaded: the model.
        place: where it is from, for errors.

    Raises:
        UserError: it has another number of labels.
    """

    head = RATING

    def __init__(self, loaded: Loaded, place: str) -> None:
        super().__init__(loaded, place)
        if (labels := loaded.model.config.num_labels) != 1:
            raise UserError(f"`{RATING.option}` must have one label, but {place} has {labels}.")

    def _encoded(self, given: list[str], texts: list[str]) -> list[tuple[Any, ...]]:
        return [(both,) for both in self._loaded.tokenizer(given, texts, **self._loaded.truncation).encodings]

    def _values(self, encoded: Sequence[tuple[Any, ...]]) -> Tensor:
        found: Tensor = self._loaded.model(**self._loaded.padded([both for (both,) in encoded])).logits[:, 0]
        return found

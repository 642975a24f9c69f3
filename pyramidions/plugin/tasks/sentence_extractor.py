"""Extracts sentences, behind the interface of fairseq's generators."""

from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor

from pyramidions.data.labels import HEADING
from pyramidions.extract.selection import SelectionRules, select
from pyramidions.text.tokenizer import EOS, Tokenizer


class SentenceExtractor:
    """Writes the best sentences of each document, in reading order, as its only hypothesis.

    Args:
        tokenizer: with a sentence marker.
        rules: of the selection, which is by the mean score of all models.
    """

    eos = EOS

    def __init__(self, tokenizer: Tokenizer, rules: SelectionRules) -> None:
        self.tokenizer = tokenizer
        self.rules = rules
        self.symbols_to_strip_from_output = {EOS}

    @torch.no_grad()
    def generate(
        self, models: list[Any], sample: dict[str, Any], prefix_tokens: Optional[Tensor] = None, **unused: Any
    ) -> list[list[dict[str, Any]]]:
        """Extract from a batch.

        Args:
            models: return scores (B, U) of the units of ``net_input``.
            sample: of the task; all units are sentences where there are no ``labels`` (B, U).
            prefix_tokens: what a summary must begin with; not supported.

        Returns:
            For each document a list of one hypothesis: ``tokens`` of the sentences, with a marker in between and
            `</s>` at the end, ``positional_scores`` (each token's is its sentence's) and ``score``, their mean over
            sentences.
        """
        for model in models:
            model.eval()
        net_input = sample["net_input"]
        scores = torch.stack([model(**net_input).float() for model in models]).mean(0)
        if "labels" in sample:
            scores = scores.masked_fill(sample["labels"] == HEADING, -torch.inf)
        rows = zip(net_input["src_tokens"].tolist(), net_input["src_lengths"].tolist(), scores.tolist(), strict=True)
        return [[self._hypothesis(ids[:length], found)] for ids, length, found in rows]

    def _hypothesis(self, ids: list[int], scores: list[float]) -> dict[str, Any]:
        units = self._units(ids)
        texts = [self.tokenizer.decode(unit) for unit in units]
        # Truncation may leave nothing of the last sentence but its beginning.
        rated = np.array([score if text else -np.inf for text, score in zip(texts, scores, strict=False)])
        tokens: list[int] = []
        positional: list[float] = []
        chosen = select(texts, rated, self.rules)
        for number, index in enumerate(chosen):
            unit = [*([self.tokenizer.marker_id] if number else []), *units[index]]
            tokens += unit  # type: ignore[arg-type]
            positional += [scores[index]] * len(unit)
        mean = float(np.mean([scores[index] for index in chosen])) if chosen else 0.0
        return {
            "tokens": torch.tensor([*tokens, EOS]),
            "score": torch.tensor(mean),
            "positional_scores": torch.tensor([*positional, mean]),
            "attention": None,
            "alignment": None,
        }

    def _units(self, ids: list[int]) -> list[list[int]]:
        units: list[list[int]] = [[]]
        for place, i in enumerate(ids):
            if i == self.tokenizer.marker_id:
                units += [[]] * (place > 0)
            elif i != EOS:
                units[-1].append(i)
        return units

"""Corrupted texts, and what is missing in them."""

from typing import Any, Literal

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from pyramidions.plugin.tasks.drawn_pairs import DrawnPairs
from pyramidions.plugin.tasks.sized_texts import SizedTexts
from pyramidions.plugin.tasks.spans import SpanNoise
from pyramidions.text.tokenizer import EOS


class Corruption:
    """Passages of texts, and the spans that are missing in them.

    Both follow from the seed, the epoch and the number of the text, so that a run that goes on trains on the same ones.

    Args:
        texts: token tensors by index, which end in `</s>`.
        noise: what is corrupted.
        longest: tokens of a passage at most, without its end.
        seed: of all that is drawn.
    """

    def __init__(self, texts: Any, noise: SpanNoise, longest: int, seed: int) -> None:
        self.texts = texts
        self.noise = noise
        self.longest = longest
        self.seed = seed
        self.epoch = 1

    def passage_sizes(self) -> np.ndarray:
        """Return the tokens of each text's passage."""
        sizes: np.ndarray = np.minimum(np.asarray(self.texts.sizes) - 1, self.longest)
        return sizes

    def of(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what is left of the passage of a text, and the missing spans."""
        random = np.random.default_rng([self.seed, self.epoch, index])
        text: np.ndarray = self.texts[index][:-1].numpy()
        length = min(len(text), self.longest)
        start = int(random.integers(len(text) - length + 1))
        passage = text[start : start + length]
        # Of a single token nothing is left to tell what is missing.
        return self.noise.corrupt(passage, random) if length > 1 else (passage, passage[:0])


class CorruptedTexts(SizedTexts):
    """One side of corrupted texts, with the tokenizer's prefix and the end of the text.

    Args:
        corruption: of the texts.
        side: "source" is what is left of them, "target" what is missing.
        prefix: the tokens that begin each text.
    """

    def __init__(self, corruption: Corruption, side: Literal["source", "target"], prefix: tuple[int, ...]) -> None:
        self.corruption = corruption
        self.prefix = list(prefix)
        self._number = ("source", "target").index(side)
        passages = corruption.passage_sizes().tolist()
        of_passage = {passage: self._length(passage) for passage in set(passages)}
        super().__init__(corruption.texts, np.array([of_passage[passage] for passage in passages]))

    def _length(self, passage: int) -> int:
        sizes = self.corruption.noise.sizes(passage) if passage > 1 else (passage, 0)
        return len(self.prefix) + sizes[self._number] + 1

    def __getitem__(self, index: int) -> Tensor:
        text = self.corruption.of(index)[self._number]
        return torch.tensor([*self.prefix, *text.tolist(), EOS])


def span_pairs(
    corruption: Corruption, dictionary: Dictionary, prefix: tuple[int, ...], is_training: bool
) -> DrawnPairs:
    """Return pairs of corrupted texts and what is missing in them.

    Args:
        corruption: of the texts.
        dictionary: of both.
        prefix: the tokens that begin each text.
        is_training: texts are shuffled, and each epoch has passages and spans of its own.
    """
    source = CorruptedTexts(corruption, "source", prefix)
    target = CorruptedTexts(corruption, "target", prefix)
    return DrawnPairs(corruption, source, target, dictionary, is_training)

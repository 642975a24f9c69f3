"""Examples of a toy problem, made as they are read."""

from typing import Literal

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from pyramidions.plugin.tasks.drawn_pairs import DrawnPairs
from pyramidions.plugin.tasks.sized_texts import SizedTexts
from pyramidions.plugin.tasks.toy_problems import Pair, Problem
from pyramidions.text.tokenizer import EOS, SPECIALS


class Examples:
    """Examples of lengths that are drawn once; their symbols follow from the seed, the epoch and their number.

    Args:
        problem: makes an example of a length.
        lengths: of inputs, from the shortest to the longest, all equally likely.
        count: of examples.
        seed: of all that is drawn, for this split alone.
    """

    def __init__(self, problem: Problem, lengths: tuple[int, int], count: int, seed: tuple[int, int]) -> None:
        self.problem = problem
        self.lengths = np.random.default_rng(seed).integers(lengths[0], lengths[1] + 1, size=count)
        self.seed = seed
        self.epoch = 1

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Pair:
        random = np.random.default_rng([*self.seed, self.epoch, index])
        return self.problem(int(self.lengths[index]), random)


class _Side(SizedTexts):
    """The inputs of examples, or the answers."""

    def __init__(self, examples: Examples, side: Literal["source", "target"]) -> None:
        # No answer is longer than its input.
        super().__init__(examples, examples.lengths + 1)
        self.side = side

    def __getitem__(self, index: int) -> Tensor:
        symbols = getattr(self.dataset[index], self.side)
        return torch.tensor([*(len(SPECIALS) + symbol for symbol in symbols), EOS])


def toy_pairs(examples: Examples, dictionary: Dictionary, is_training: bool) -> DrawnPairs:
    """Return inputs and answers of a toy problem.

    Args:
        examples: of the problem.
        dictionary: of both sides.
        is_training: examples are shuffled, and new in each epoch.
    """
    return DrawnPairs(examples, _Side(examples, "source"), _Side(examples, "target"), dictionary, is_training)

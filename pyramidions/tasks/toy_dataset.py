"""Examples of a toy problem, made as they are read."""

from typing import Literal

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, Dictionary
from torch import Tensor

from pyramidions.tasks.pair_dataset import PairDataset
from pyramidions.tasks.toy_problems import Pair, Problem
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


class _Side(BaseWrapperDataset):
    """The inputs of examples, or the answers."""

    def __init__(self, examples: Examples, side: Literal["source", "target"]) -> None:
        super().__init__(examples)
        self.side = side
        # No answer is longer than its input; a batch holds that of addition with room to spare.
        self._sizes = examples.lengths + 1

    def __getitem__(self, index: int) -> Tensor:
        symbols = getattr(self.dataset[index], self.side)
        return torch.tensor([*(len(SPECIALS) + symbol for symbol in symbols), EOS])

    @property
    def sizes(self) -> np.ndarray:
        """Lengths in tokens, at most."""
        return self._sizes

    def num_tokens(self, index: int) -> int:
        """Return the length of a text, at most."""
        return int(self._sizes[index])

    def size(self, index: int) -> int:
        """Return the length of a text, at most."""
        return int(self._sizes[index])


class ToyDataset(PairDataset):
    """Inputs and answers of a toy problem.

    Args:
        examples: of the problem.
        dictionary: of both sides.
        is_training: examples are shuffled, and new in each epoch.
    """

    def __init__(self, examples: Examples, dictionary: Dictionary, is_training: bool) -> None:
        super().__init__(_Side(examples, "source"), _Side(examples, "target"), dictionary, shuffle=is_training)
        self._examples = examples
        self._is_training = is_training

    def set_epoch(self, epoch: int) -> None:
        """Draw anew in each epoch of training; validation is the same in all."""
        super().set_epoch(epoch)
        if self._is_training:
            self._examples.epoch = epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """False: fairseq's workers of an earlier epoch would draw as they did then."""
        return False

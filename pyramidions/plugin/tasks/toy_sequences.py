"""The task: toy problems on decimal numbers, trained on short inputs and tested on longer ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq import metrics
from fairseq.data import Dictionary
from fairseq.tasks import register_task

from pyramidions.base.errors import UserError
from pyramidions.plugin.hooks import seed_of
from pyramidions.plugin.tasks.config import ToySequencesConfig
from pyramidions.plugin.tasks.datasets import DrawnPairs
from pyramidions.plugin.tasks.training_task import TrainingTask
from pyramidions.text.tokenizer import EOS, SPECIALS

#: the symbols of the shortest input of each
SHORTEST = {"copy": 1, "addition": 3}
_COUNTS = ("toy_symbols", "toy_symbols_right", "toy_sequences", "toy_sequences_right")
_NUMBERS = {"train": 0, "valid": 1, "test": 2}

BASE = 10
SYMBOLS = (*map(str, range(BASE)), "+")
_PLUS = SYMBOLS.index("+")


class Pair(NamedTuple):
    """An input and its answer, as indices of `SYMBOLS`."""

    source: list[int]
    target: list[int]


Problem = Callable[[int, np.random.Generator], Pair]


def copying(length: int, random: np.random.Generator) -> Pair:
    """Return ``length`` random digits, and the same digits."""
    digits: list[int] = random.integers(BASE, size=length).tolist()
    return Pair(digits, digits)


def addition(length: int, random: np.random.Generator) -> Pair:
    """Return two random numbers with a plus in between, ``length`` symbols in all, and their sum.

    The least significant digit comes first. Numbers begin with any digit, and the sum has one digit more than the
    longer of them, zero where nothing is carried.
    """
    if length < 3:
        raise ValueError(f"`length` must be at least 3, but is {length}.")
    first = int(random.integers(1, length - 1))
    numbers = [random.integers(BASE, size=size).tolist() for size in (first, length - 1 - first)]
    total, carried = [], 0
    for place in range(max(map(len, numbers))):
        carried += sum(number[place] for number in numbers if place < len(number))
        total.append(carried % BASE)
        carried //= BASE
    return Pair([*numbers[0], _PLUS, *numbers[1]], [*total, carried])


PROBLEMS: dict[str, Problem] = {"copy": copying, "addition": addition}


class Examples:
    """Examples of lengths that are drawn once; their symbols follow from the seed, the epoch and their number."""

    def __init__(self, problem: Problem, lengths: tuple[int, int], count: int, seed: tuple[int, int]) -> None:
        self.problem = problem
        self.lengths = np.random.default_rng(seed).integers(lengths[0], lengths[1] + 1, size=count)
        self.seed = seed
        self.epoch = 1
        # No answer is longer than its input.
        self.sizes = self.lengths + 1, self.lengths + 1

    def __len__(self) -> int:
        return len(self.lengths)

    def pair(self, index: int) -> tuple[list[int], list[int]]:
        random = np.random.default_rng([*self.seed, self.epoch, index])
        both = self.problem(int(self.lengths[index]), random)
        source, target = ([*(len(SPECIALS) + symbol for symbol in symbols), EOS] for symbols in both)
        return source, target


@register_task("toy_sequences", dataclass=ToySequencesConfig)
class ToySequencesTask(TrainingTask):
    """Copying and addition of decimal numbers (Jaszczur et al. 2021, section 4.3 and table 4).

    Examples are made as they are read: new ones in each epoch of training, and always the same in the splits "valid",
    as long as those of training, and "test", longer ones. Validation logs the share of symbols that a model gets right,
    given the true ones before them, and the share of sequences without an error: those that it would write.
    """

    cfg: ToySequencesConfig

    def __init__(self, cfg: ToySequencesConfig) -> None:
        super().__init__(cfg)
        least = SHORTEST[cfg.problem]
        for name in ("shortest", "longest", "test_shortest", "test_longest"):
            if getattr(cfg, name) < least:
                raise UserError(f"`{name}` must be at least {least} for {cfg.problem}, but is {getattr(cfg, name)}.")
        for short, long in (("shortest", "longest"), ("test_shortest", "test_longest")):
            if getattr(cfg, short) > getattr(cfg, long):
                raise UserError(
                    f"`{short}` must be at most `{long}`, but is {getattr(cfg, short)}, above {getattr(cfg, long)}."
                )
        self.dictionary = Dictionary()
        for symbol in SYMBOLS:
            self.dictionary.add_symbol(symbol)

    def max_positions(self) -> tuple[int, int]:
        """Return the most tokens of an input and of an answer, with their ends."""
        longest = max(self.cfg.longest, self.cfg.test_longest) + 1
        return longest, longest

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Make the examples of a split."""
        cfg = self.cfg
        if split not in _NUMBERS:
            raise UserError(f"A split must be one of {', '.join(_NUMBERS)}, but is {split!r}.")
        lengths = (cfg.test_shortest, cfg.test_longest) if split == "test" else (cfg.shortest, cfg.longest)
        count = cfg.examples if split == "train" else cfg.test_examples
        examples = Examples(PROBLEMS[cfg.problem], lengths, count, (seed_of(cfg), _NUMBERS[split]))
        self.datasets[split] = DrawnPairs(examples, self.dictionary, is_training=split == "train")

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch, and count correct symbols and sequences."""
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if sample:
            with torch.no_grad():
                logits, _ = model(**sample["net_input"])
            target = sample["target"]
            real = target.ne(self.dictionary.pad())
            right = logits.argmax(dim=-1).eq(target)
            counts = (real.sum(), (right & real).sum(), torch.tensor(len(target)), (right | ~real).all(dim=1).sum())
            logging_output.update({name: int(count) for name, count in zip(_COUNTS, counts, strict=True)})
        return loss, sample_size, logging_output

    def validation_only_metrics(self) -> list[str]:
        return ["symbols_right", "sequences_right"]

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the criterion's metrics and, at validation, the shares of correct symbols and sequences in percent."""
        super().reduce_metrics(logging_outputs, criterion)
        symbols, symbols_right, sequences, sequences_right = (
            sum(output.get(name, 0) for output in logging_outputs) for name in _COUNTS
        )
        if sequences:
            metrics.log_scalar("symbols_right", 100 * symbols_right / symbols, symbols, round=2)
            metrics.log_scalar("sequences_right", 100 * sequences_right / sequences, sequences, round=2)

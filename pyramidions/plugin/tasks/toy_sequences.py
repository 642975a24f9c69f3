"""The task: toy problems, trained on short inputs and tested on longer ones."""

from typing import Any

import torch
from fairseq import metrics
from fairseq.data import Dictionary
from fairseq.tasks import register_task

from pyramidions.base.errors import UserError
from pyramidions.plugin.tasks.config import ToySequencesConfig
from pyramidions.plugin.tasks.run_config import run_of
from pyramidions.plugin.tasks.toy_dataset import Examples, toy_pairs
from pyramidions.plugin.tasks.toy_problems import PROBLEMS, SHORTEST, SYMBOLS
from pyramidions.plugin.tasks.training_task import TrainingTask

_COUNTS = ("toy_symbols", "toy_symbols_right", "toy_sequences", "toy_sequences_right")
_NUMBERS = {"train": 0, "valid": 1, "test": 2}


@register_task("toy_sequences", dataclass=ToySequencesConfig)
class ToySequencesTask(TrainingTask):
    """Copying and addition of decimal numbers (Jaszczur et al. 2021, section 4.3 and table 4).

    Examples are made as they are read: new ones in each epoch of training, and always the same in the splits "valid",
    as long as those of training, and "test", longer ones. Validation logs the share of symbols that a model gets right,
    given the true ones before them, and of sequences of which it gets every symbol right: those that it would write.

    Args:
        cfg: what the user said.

    Raises:
        UserError: an option is out of its range.
    """

    cfg: ToySequencesConfig

    def __init__(self, cfg: ToySequencesConfig) -> None:
        super().__init__(cfg)
        if cfg.problem not in PROBLEMS:
            raise UserError(f"`problem` must be one of {', '.join(PROBLEMS)}, but is {cfg.problem!r}.")
        least = SHORTEST[cfg.problem]
        for name in ("shortest", "longest", "test_shortest", "test_longest"):
            if getattr(cfg, name) < least:
                raise UserError(f"`{name}` must be at least {least} for {cfg.problem}, but is {getattr(cfg, name)}.")
        for short, long in (("shortest", "longest"), ("test_shortest", "test_longest")):
            if getattr(cfg, short) > getattr(cfg, long):
                raise UserError(
                    f"`{short}` must be at most `{long}`, but is {getattr(cfg, short)}, above {getattr(cfg, long)}."
                )
        for name in ("examples", "test_examples"):
            if getattr(cfg, name) < 1:
                raise UserError(f"`{name}` must be at least 1, but is {getattr(cfg, name)}.")
        self.dictionary = Dictionary()
        for symbol in SYMBOLS:
            self.dictionary.add_symbol(symbol)

    @property
    def source_dictionary(self) -> Dictionary:
        """The one dictionary."""
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        """The one dictionary."""
        return self.dictionary

    def max_positions(self) -> tuple[int, int]:
        """Return the most tokens of an input and of an answer, with their ends."""
        longest = max(self.cfg.longest, self.cfg.test_longest) + 1
        return longest, longest

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Make the examples of a split.

        Raises:
            UserError: there is no such split.
        """
        cfg = self.cfg
        if split not in _NUMBERS:
            raise UserError(f"A split must be one of {', '.join(_NUMBERS)}, but is {split!r}.")
        lengths = (cfg.test_shortest, cfg.test_longest) if split == "test" else (cfg.shortest, cfg.longest)
        count = cfg.examples if split == "train" else cfg.test_examples
        run = run_of(cfg)
        seed = 1 if run is None else run.common.seed
        examples = Examples(PROBLEMS[cfg.problem], lengths, count, (seed, _NUMBERS[split]))
        self.datasets[split] = toy_pairs(examples, self.dictionary, is_training=split == "train")

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch, and count what is right."""
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
        """Return the shares of what is right."""
        return ["symbols_right", "sequences_right"]

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the criterion's metrics and, at validation, the shares of what is right, in percent."""
        super().reduce_metrics(logging_outputs, criterion)
        symbols, symbols_right, sequences, sequences_right = (
            sum(output.get(name, 0) for output in logging_outputs) for name in _COUNTS
        )
        if sequences:
            metrics.log_scalar("symbols_right", 100 * symbols_right / symbols, symbols, round=2)
            metrics.log_scalar("sequences_right", 100 * sequences_right / sequences, sequences, round=2)

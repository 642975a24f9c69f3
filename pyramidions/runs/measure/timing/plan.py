"""What is timed, and how."""

from dataclasses import dataclass

import torch

from pyramidions.base.environment import why_no_gpu
from pyramidions.base.errors import UserError

FIRST_TOKEN = 4  # of synthetic texts; smaller numbers are special, as in prepared data
_DEVICES = ("cpu", "cuda")
_PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Plan:
    """What is timed, and how.

    Attributes:
        train_batch: documents of a training step.
        micro_batch: documents of it that are in memory at a time, their gradients added up; None for all of them.
        target_tokens: of a synthetic summary in the training step; None for the longest that a config allows.
        decode_batch: documents that are decoded together.
        decode_tokens: how many tokens each beam is forced to write, the end included, in one timing each; none to
            time training alone.
        repeats: timings of each kind, at least 2.
        warmup: turns before them that are not counted.
        vocab_size: V, specials included.
        seed: of weights, documents and dropout.
        device: cpu or cuda, the current GPU.
        precision: fp32, or bf16: autocast to bfloat16 in training and in decoding, while parameters, gradients and
            Adam's moments stay in float32.

    Raises:
        UserError: a value that breaks a rule, or a device that is not there.
    """

    train_batch: int = 64
    micro_batch: int | None = None
    target_tokens: int | None = None
    decode_batch: int = 8
    decode_tokens: tuple[int, ...] = (256, 512)
    repeats: int = 5
    warmup: int = 2
    vocab_size: int = 32768
    seed: int = 1
    device: str = "cpu"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        least = {"train_batch": 1, "micro_batch": 1, "target_tokens": 1, "decode_batch": 1, "repeats": 2, "warmup": 0}
        for name, bound in {**least, "vocab_size": FIRST_TOKEN + 1}.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise UserError(f"`{name}` must be at least {bound}, but is {value}.")
        if self.at_a_time > self.train_batch:
            raise UserError(
                f"`micro_batch` must be at most `train_batch`, {self.train_batch}, but is {self.micro_batch}."
            )
        tokens = self.decode_tokens
        if (tokens and min(tokens) < 1) or len(set(tokens)) < len(tokens):
            raise UserError(f"`decode_tokens` must be positive and differ, but are {tokens}.")
        for name, known in (("device", _DEVICES), ("precision", _PRECISIONS)):
            if getattr(self, name) not in known:
                raise UserError(f"`{name}` must be one of {', '.join(known)}, but is {getattr(self, name)!r}.")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise UserError(f"`device` must be cpu, but is cuda: {why_no_gpu()}.")

    @property
    def at_a_time(self) -> int:
        """Documents of a training step that are in memory at a time."""
        return self.micro_batch or self.train_batch

    @property
    def pieces(self) -> int:
        """Pieces that a training step consists of."""
        return -(-self.train_batch // self.at_a_time)

    @property
    def turns(self) -> int:
        """Turns of each kind, the warm-up included."""
        return self.warmup + self.repeats

    def autocast(self) -> torch.autocast:
        """Return a context of this precision."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bf16")
